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
  try {
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode
    if (error instanceof SetupError) {
      console.error(`tollbase: ${error.message}`)
      return 2
    }
    throw error
  }
}
