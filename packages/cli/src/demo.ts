import { type Command, InvalidArgumentError } from 'commander'

type Options = { readonly rows?: number; readonly keep?: boolean }

/** `tollbase demo`: exit 0 where every step held, 1 where one did not. */
export function addDemoCommand(program: Command, finish: (code: number) => void): void {
  program
    .command('demo')
    .description(
      'sell a public data set to a buyer on a local chain, and check every answer, receipt and balance',
    )
    .option('--rows <count>', 'how many of its rows to store (all)', rowCount)
    .option('--keep', 'keep the data folder, with the receipts, and say where it is')
    .action(async ({ rows, keep }: Options) => {
      const { runDemo } = await import('./demo/run.ts')
      finish(await runDemo({ rows, keep: keep === true }))
    })
}

function rowCount(text: string): number {
  const count = Number(text)
  if (!/^\d{1,6}$/.test(text) || count < 1000)
    throw new InvalidArgumentError('It must be a whole number from 1000.')
  return count
}
