import type { Flags } from '@tollbase/server/config/config'
import type { Command } from 'commander'

const exitGraceMs = 2_000

/** `tollbase serve`, and `tollbase dev`, which is the same with a devnet. */
export function addServeCommand(program: Command, finish: (code: number) => void): void {
  const run = async (flags: Flags) => {
    const [{ readConfig }, { serve }] = await Promise.all([
      import('@tollbase/server/config/config'),
      import('@tollbase/server/main'),
    ])
    const output = {
      line: (text: string) => console.log(text),
      error: (text: string) => console.error(text),
    }
    const config = readConfig(flags, process.env)
    try {
      finish(await serve(config, output))
    } finally {
      // Handles left open by a late drain or half a start must not keep the process alive.
      setTimeout(() => process.exit(), exitGraceMs).unref()
    }
  }
  addServeOptions(program.command('serve'))
    .description('start the service')
    .option('--devnet', 'with a local EVM chain, a test dollar and a faucet')
    .action(run)
  addServeOptions(program.command('dev'))
    .description(
      'start the service with a local EVM chain, a test dollar and a faucet (serve --devnet)',
    )
    .action((flags: Flags) => run({ ...flags, devnet: true }))
}

function addServeOptions(command: Command): Command {
  return command
    .option('--host <host>', 'address to listen on (TOLLBASE_HOST, 127.0.0.1)')
    .option('--port <port>', 'port to listen on, 0 for any (TOLLBASE_PORT, 9092)')
    .option('--data-dir <folder>', 'where data is kept (TOLLBASE_DATA_DIR, ./tollbase-data)')
    .option('--database-url <url>', 'a PostgreSQL server instead of our own (DATABASE_URL)')
    .option(
      '--operator-key <key>',
      "the operator's key (TOLLBASE_OPERATOR_KEY; made at the first start)",
    )
    .option('--public-url <url>', 'where buyers reach the service')
    .option(
      '--log-level <level>',
      'fatal, error, warn, info, debug, trace or silent (TOLLBASE_LOG_LEVEL, info)',
    )
    .option(
      '--log-format <format>',
      'pretty or json (TOLLBASE_LOG_FORMAT; pretty in a terminal, json elsewhere)',
    )
    .option(
      '--after-restore',
      'the database was restored from a backup: what was paid before this start buys nothing more',
    )
    .option(
      '--allow-upstream <host...>',
      'hosts (host or host:port) that API collections may ask though they are private',
    )
    .option('--config <file>', 'configuration file (tollbase.config.json)')
}
