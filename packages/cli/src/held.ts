import { join } from 'node:path'
import { formatUnits } from '@tollbase/server/base/format-usd'
import { SetupError } from '@tollbase/server/base/setup-error'
import type { Command } from 'commander'
import {
  type Answer,
  askService,
  endWithAnswer,
  type Question,
  readKeyFile,
} from './ask-service.ts'
import { formatAmount } from './format-amount.ts'
import { printLine } from './print-line.ts'

type HeldFlags = {
  readonly url: string
  readonly dataDir: string
  readonly operatorKeyFile?: string
  readonly json?: boolean
}

type ReleaseFlags = HeldFlags & {
  readonly payment?: string
  readonly payer?: string
  readonly all?: boolean
}

/** `tollbase held list|release`: exit 1 where the service refuses, 2 where it cannot be asked. */
export function addHeldCommand(program: Command, finish: (code: number) => void): void {
  const held = program
    .command('held')
    .description('list and release payments that came before a restore (of a running service)')
  const add = (name: string, description: string) =>
    held
      .command(name)
      .description(description)
      .option('--url <url>', 'the service', 'http://127.0.0.1:9092')
      .option('--data-dir <folder>', "where the operator's key is", './tollbase-data')
      .option('--operator-key-file <file>', 'a file with that key, where it is elsewhere')
      .option('--json', 'print the answer as JSON')
  add('list', 'list what is held: payment, payer, amount, network and transfer').action(
    async (flags: HeldFlags) => {
      const answer = await askAll(flags, 'listHeldPayments', (cursor) => ({
        query: cursor === undefined ? {} : { cursor },
      }))
      finish(endWithAnswer(flags, answer, printHeld))
    },
  )
  add('release', "put the money on the payers' balances")
    .option('--payment <id>', 'release one payment')
    .option('--payer <address>', 'release all payments of one payer')
    .option('--all', 'release all payments that are held')
    .action(async (flags: ReleaseFlags) => {
      const body = readChoice(flags)
      const answer = await askAll(flags, 'releaseHeldPayments', () => ({ body }))
      finish(endWithAnswer(flags, answer, printReleased))
    })
}

function readChoice({ payment, payer, all }: ReleaseFlags): object {
  const chosen = { ...(payment && { payment_id: payment }), ...(payer && { payer }) }
  const choice = { ...chosen, ...(all === true && { all }) }
  if (Object.keys(choice).length !== 1)
    throw new SetupError('release needs one of --payment, --payer and --all')
  return choice
}

/** Asks until there is no more, and joins the answers. */
async function askAll(
  flags: HeldFlags,
  operation: 'listHeldPayments' | 'releaseHeldPayments',
  ask: (cursor: string | undefined) => Pick<Question, 'query' | 'body'>,
): Promise<Answer> {
  const { url, dataDir, operatorKeyFile: file } = flags
  const key = await (file === undefined
    ? readKeyFile('--data-dir', join(dataDir, 'operator-key'))
    : readKeyFile('--operator-key-file', file))
  const headers = { authorization: `Bearer ${key}` }
  const payments: Held[] = []
  let cursor: string | undefined
  for (;;) {
    const answer = await askService(operation, { url, headers, ...ask(cursor) })
    if (answer.status !== 200) return answer
    payments.push(...answer.body.payments)
    cursor = answer.body.next_cursor ?? undefined
    if (cursor === undefined) return { status: 200, body: { payments } }
  }
}

type Held = Readonly<
  Record<'payment_id' | 'payer' | 'network' | 'transaction' | 'amount' | 'booked_at', string>
>

function printHeld({ payments }: { readonly payments: readonly Held[] }): void {
  for (const { booked_at: at, payment_id: id, payer, amount, network, transaction } of payments)
    printLine([at, id, payer, formatAmount(amount), network, transaction].join('  '))
  const are = payments.length === 1 ? 'payment is' : 'payments are'
  printLine(`${payments.length} ${are} held: ${formatSum(payments)}`)
}

function printReleased({ payments }: { readonly payments: readonly Held[] }): void {
  const released = payments.length === 1 ? 'payment' : 'payments'
  printLine(`${payments.length} ${released} released: ${formatSum(payments)}`)
}

function formatSum(payments: readonly Held[]): string {
  const sum = payments.reduce((total, { amount }) => total + BigInt(amount), 0n)
  return formatUnits(sum)
}
