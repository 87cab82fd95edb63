import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { Booking } from './ledger-body.ts'

export const channelClaimTableName = 'channel_claim'

/**
 * One row for each time that a channel was found claimed from: what it brought in atomic units, below zero where a
 * reorganisation took a claim back, and the transaction of ours that it followed, null where somebody else looked first.
 * Entries from before claims were listed do not name one, and have no row.
 */
export function buildChannelClaimTable(schema: string): SqlStatement[] {
  const claims = sql.id(schema, channelClaimTableName)
  return [
    sql`CREATE TABLE ${claims} (
      leaf int8 NOT NULL, channel text NOT NULL, payer text NOT NULL, network text NOT NULL, amount numeric NOT NULL,
      transaction text, time_ms int8 NOT NULL, CONSTRAINT channel_claim_pkey PRIMARY KEY (leaf))`,
    sql`CREATE INDEX channel_claim_payer ON ${claims} (payer, time_ms, leaf)`,
  ]
}

export async function writeChannelClaims(
  tx: Queryable,
  schema: string,
  bookings: readonly Booking[],
): Promise<void> {
  const claims = bookings.filter(({ body }) => body.claimed_by !== undefined)
  if (claims.length === 0) return
  const bodies = claims.map(({ body }) => body)
  const sums = bodies.map((body) =>
    String(BigInt(String(body.claimed)) - BigInt(String(body.claimed_before))),
  )
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, channelClaimTableName)} (leaf, channel, payer, network, amount, transaction, time_ms)
    SELECT * FROM unnest(
      ${claims.map(({ entry }) => entry.leafIndex)}::int8[], ${bodies.map((body) => body.payment_id)}::text[],
      ${bodies.map((body) => readPayer(body.config))}::text[], ${bodies.map((body) => String(body.network))}::text[],
      ${sums}::numeric[], ${bodies.map((body) => (body.claimed_by === null ? null : String(body.claimed_by)))}::text[],
      ${claims.map(({ entry }) => entry.time)}::int8[])`)
}

function readPayer(config: unknown): string {
  return String((config as { readonly payer: string }).payer)
}
