import { SetupError } from '@tollbase/server/base/setup-error'
import { Command, CommanderError } from 'commander'
import { addAuditCommand } from './audit.ts'
import { addBackupCommand } from './backup.ts'
import { addDemoCommand } from './demo.ts'
import { addExportCommand } from './export-app.ts'
import { addHeldCommand } from './held.ts'
import { addImportCommand } from './import-app.ts'
import { addPricingCommand } from './pricing.ts'
import { addRebuildCommand } from './rebuild.ts'
import { addRecoverCommand } from './recover.ts'
import { addRestoreCommand } from './restore.ts'
import { addServeCommand } from './serve.ts'
import { addVerifyCommand } from './verify.ts'
import { addWitnessCommand } from './witness.ts'

/** Runs one command of `tollbase` and returns its exit code. */
export async function runCommand(args: readonly string[]): Promise<number> {
  let code = 0
  const finish = (value: number) => {
    code = value
  }
  const program = new Command('tollbase')
    .description(
      'Store data on a chain of your own, charge for it over HTTP 402, and prove every answer.',
    )
    .version('0.1.0')
    .exitOverride()
    .showHelpAfterError('(tollbase --help lists the commands)')
    .showSuggestionAfterError()
  for (const add of [
    addServeCommand,
    addDemoCommand,
    addVerifyCommand,
    addWitnessCommand,
    addPricingCommand,
    addHeldCommand,
    addAuditCommand,
    addRebuildCommand,
    addRecoverCommand,
    addBackupCommand,
    addRestoreCommand,
    addExportCommand,
    addImportCommand,
  ])
    add(program, finish)
  for (const command of program.commands) addHint(command, `tollbase ${command.name()}`)
  try {
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    // Code 1 says that an audit found a difference, or that a receipt is not right; a mistyped option says neither.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (error instanceof SetupError) {
      console.error(`tollbase: ${error.message}`)
      return 2
    }
    throw error
  }
}

/** After a mistake a command says how its own options are listed. */
function addHint(command: Command, path: string): void {
  const lists = command.commands.length === 0 ? 'options' : 'commands'
  command.showHelpAfterError(`(${path} --help lists its ${lists})`)
  for (const inner of command.commands) addHint(inner, `${path} ${inner.name()}`)
}
