import { keccak256, toHex } from 'viem'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type Books, findPayingAccount, listDifferences } from './books.ts'
import type { Market } from './market.ts'
import type { Takings } from './money-out.ts'

type Row = {
  readonly id: string
  readonly account: string
  readonly recipient: string
  readonly amount: string
  readonly state: string
  /** Why it was not made. */
  readonly reason?: string | null
}

/** Counts the transfers that have no outcome yet, or whose outcome the chain took back. */
export async function countOpenTransfers(database: Database): Promise<number> {
  const open = await database.query(sql`
    SELECT id FROM operations.outgoing_transfer AS one WHERE state NOT IN ('paid', 'returned') OR EXISTS (
      SELECT 1 FROM operations.taken_back AS gone WHERE gone.id = one.id AND gone.transaction IS NULL)`)
  return open.length
}

/**
 * Checks, once every transfer is past its end, that each is over; that the token moved those that are paid and no
 * others, once and as they were asked for; that what was cancelled or returned never left; and that nothing was sent
 * out that nobody asked for.
 */
export async function checkTransfers(
  { chain, database, hasStoodStill }: Market,
  takings: Takings,
  books: Books,
): Promise<string[]> {
  const rows = await database.query<Row>(
    sql`SELECT id, account, recipient, amount::text AS amount, state, reason FROM operations.outgoing_transfer`,
  )
  const booked = [...books.transfers].map(([id, { start, end }]) => {
    const ended = end === undefined ? 'open' : end.kind.slice('transfer_'.length)
    const state = books.reversals.has(id) ? 'returned' : ended
    return formatTransfer({ ...start, id, account: findPayingAccount(start), state })
  })
  const moved = chain.allPaidOut().map(({ nonce, to, value }) => `${nonce} ${value} to ${to}`)
  const paid = rows.filter(({ state }) => state === 'paid')
  const { list, isAutomatic } = takings
  const told = new Set(list.flatMap((one) => one.told?.id ?? []))
  return [
    ...listDifferences('transfers', { expected: booked, found: rows.map(formatTransfer) }),
    ...listDifferences('money that left', {
      expected: paid.map(
        ({ id, recipient, amount }) => `${nameTransfer(id)} ${amount} to ${recipient}`,
      ),
      found: moved,
    }),
    ...rows.flatMap(({ id, state }) =>
      state === 'paid' || state === 'returned' ? [] : [`the transfer ${id} stays ${state}`],
    ),
    // Until its end any block may take it.
    ...rows.flatMap(({ id, state, reason }) =>
      state === 'returned' && reason !== 'cancelled' && !hasStoodStill
        ? [`the transfer ${id} was given back before its end: ${reason}`]
        : [],
    ),
    ...rows.flatMap((one) =>
      told.has(one.id) || (isAutomatic && one.id.startsWith('payout_'))
        ? []
        : [`nobody knows of ${formatTransfer(one)}`],
    ),
    ...list.flatMap(({ name, told: one, isCancelled }) => {
      if (one === undefined) return []
      const row = rows.find(({ id }) => id === one.id)
      if (row === undefined || row.amount !== String(one.amount))
        return [`${name} was told to be ${one.id}, which is not there`]
      return isCancelled && row.state !== 'returned'
        ? [`${name} was cancelled and is ${row.state}`]
        : []
    }),
  ]
}

/** The nonce that the token knows a transfer by. */
function nameTransfer(id: string): string {
  return keccak256(toHex(`tollbase transfer 1\n${id}`))
}

function formatTransfer({ id, account, recipient, amount, state }: Row): string {
  return `${id} of ${amount} from ${account} to ${recipient}, ${state}`
}
