import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { Booking, LedgerBody } from './ledger-entry.ts'

export const channelMoveTableName = 'channel_move'

/**
 * One row for each sum of a channel that was found changed on its chain, in atomic units: what was deposited, what went
 * back to the payer, and what was claimed, which is below zero where a reorganisation took a claim back. The transaction
 * is the one of ours that the reading followed, null where somebody else made it or looked first. Entries from before
 * these were listed name none, and have no row.
 */
export function buildChannelMoveTable(schema: string): SqlStatement[] {
  const moves = sql.id(schema, channelMoveTableName)
  return [
    sql`CREATE TABLE ${moves} (
      leaf int8 NOT NULL, kind text NOT NULL, channel text NOT NULL, payer text NOT NULL, network text NOT NULL,
      amount numeric NOT NULL, transaction text, time_ms int8 NOT NULL, CONSTRAINT channel_move_pkey PRIMARY KEY (leaf, kind))`,
    sql`CREATE INDEX channel_move_payer ON ${moves} (payer, time_ms, leaf)`,
  ]
}

/** Takes over the table from before deposits and refunds were listed, which had claims alone. */
export function buildChannelMovesFromClaims(): SqlStatement[] {
  return [
    ...buildChannelMoveTable('system'),
    sql`INSERT INTO system.channel_move (leaf, kind, channel, payer, network, amount, transaction, time_ms)
      SELECT leaf, 'channel_claim', channel, payer, network, amount, transaction, time_ms FROM system.channel_claim`,
    sql`DROP TABLE system.channel_claim`,
  ]
}

type ChannelMove = {
  readonly kind: 'channel_deposit' | 'channel_refund' | 'channel_claim'
  readonly amount: bigint
  readonly transaction: unknown
}

export async function writeChannelMoves(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<void> {
  const rows = bookings.flatMap(({ entry, body }) =>
    listMoves(body).map((move) => ({ ...move, entry, body })),
  )
  if (rows.length === 0) return
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, channelMoveTableName)} (leaf, kind, channel, payer, network, amount, transaction, time_ms)
    SELECT * FROM unnest(
      ${rows.map(({ entry }) => entry.leafIndex)}::int8[], ${rows.map(({ kind }) => kind)}::text[],
      ${rows.map(({ body }) => body.payment_id)}::text[], ${rows.map(({ body }) => readPayer(body.config))}::text[],
      ${rows.map(({ body }) => String(body.network))}::text[], ${rows.map(({ amount }) => String(amount))}::numeric[],
      ${rows.map(({ transaction }) => (transaction === null ? null : String(transaction)))}::text[],
      ${rows.map(({ entry }) => entry.time)}::int8[])`)
}

/** Lists what an entry says that moved; one that names no transaction, not even null, is from before. */
function listMoves(body: LedgerBody): ChannelMove[] {
  const { balance_by: movedBy, claimed_by: claimedBy } = body
  const difference = (name: string) =>
    BigInt(String(body[name])) - BigInt(String(body[`${name}_before`]))
  const moves: ChannelMove[] = []
  if (movedBy !== undefined) {
    const amount = difference('balance')
    moves.push(
      amount > 0n
        ? { kind: 'channel_deposit', amount, transaction: movedBy }
        : { kind: 'channel_refund', amount: -amount, transaction: movedBy },
    )
  }
  if (claimedBy !== undefined)
    moves.push({ kind: 'channel_claim', amount: difference('claimed'), transaction: claimedBy })
  return moves
}

function readPayer(config: unknown): string {
  return String((config as { readonly payer: string }).payer)
}
