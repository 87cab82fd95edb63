import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { toApplicationAccount } from '../ledger-entries.ts'
import { type Claim, claims } from './claim-store.ts'
import { decideStep } from './payment-states.ts'

const replies = sql.id('operations', 'kept_reply')

/** `sale` is the body of the ledger entry that charges for it. */
export type KeptReply = {
  readonly status: number
  readonly body: Buffer
  /** JSON where there is none. */
  readonly contentType: string | null
  readonly sale: string
}

/** An answer to be kept, for its own money that came by `settledBy`, or, where that is null, for what is held. */
export type Keeping = KeptReply & {
  readonly settledBy: string | null
  readonly expiresAtMs: number
}

/**
 * Keeps what was bought before it is charged, so that no crash can charge without an answer. Returns what is kept:
 * the first answer, where there is one already; undefined where the claim is not in that state any more.
 */
export async function keepReply(
  database: Queryable,
  { id, state }: Pick<Claim, 'id' | 'state'>,
  { event, ...reply }: Keeping & { readonly event: 'kept' | 'served' },
): Promise<KeptReply | undefined> {
  const { to } = decideStep(state, event)
  const [row] = await database.query<{ moved: number; fresh: number }>(sql`
    WITH moved AS (
      UPDATE ${claims} SET state = ${to}, reason = NULL, settled_by = coalesce(${reply.settledBy}::text, settled_by)
      WHERE id = ${id} AND state = ${state} RETURNING id),
    kept AS (
      INSERT INTO ${replies} (payment_id, status, body, content_type, sale, expires_at_ms)
      SELECT id, ${reply.status}::int4, ${reply.body}::bytea, ${reply.contentType}::text, ${reply.sale}::text,
        ${reply.expiresAtMs}::int8 FROM moved
      ON CONFLICT (payment_id) DO NOTHING RETURNING payment_id)
    SELECT (SELECT count(*)::int4 FROM moved) AS moved, (SELECT count(*)::int4 FROM kept) AS fresh`)
  if (row?.moved !== 1) return undefined
  if (row.fresh === 1) return reply
  return (await findReply(database, id)) ?? reply
}

export async function findReply(
  database: Queryable,
  paymentId: string,
): Promise<KeptReply | undefined> {
  const [row] = await database.query<KeptReply>(
    sql`SELECT status, body, content_type AS "contentType", sale FROM ${replies} WHERE payment_id = ${paymentId}`,
  )
  return row
}

/** Lists the bodies of kept replies of a content type. */
export async function listReplyBodies(database: Queryable, contentType: string): Promise<Buffer[]> {
  const rows = await database.query<{ body: Buffer }>(
    sql`SELECT body FROM ${replies} WHERE content_type = ${contentType}`,
  )
  return rows.map(({ body }) => body)
}

/** A reply that is not charged for yet stays: the money that came for it must buy something. */
const isCharged = sql`(claim.state NOT IN ('owed', 'answered') OR EXISTS (
  SELECT 1 FROM ${sql.id('system', 'sale')} AS sale WHERE sale.payment_id = claim.id))`

/**
 * Drops replies with what an application sold as one of these items (`collection:visits`), by itself or in a sale of
 * another one, and those that it sold and that have this text.
 */
export async function dropRepliesWith(
  database: Queryable,
  wanted: { readonly app: string; readonly items: readonly string[]; readonly text: string },
): Promise<void> {
  const account = toApplicationAccount(wanted.app)
  await database.execute(sql`
    DELETE FROM ${replies} WHERE payment_id IN (
      SELECT kept.payment_id FROM ${replies} AS kept JOIN ${claims} AS claim ON claim.id = kept.payment_id
      WHERE (claim.app = ${wanted.app} OR position(${JSON.stringify(account)} IN kept.sale) > 0) AND ${isCharged} AND (
        (claim.app = ${wanted.app} AND position(convert_to(${wanted.text}, 'UTF8') IN kept.body) > 0)
        OR EXISTS (
          SELECT 1 FROM jsonb_array_elements(kept.sale::jsonb -> 'sold') AS part
          WHERE (claim.app = ${wanted.app} OR part ->> 'account' = ${account})
            AND concat(part ->> 'kind', ':', part ->> 'name') = ANY(${[...wanted.items]}::text[]))))`)
}

/**
 * Drops kept replies that are past their time, and of delivered payments the oldest beyond the bound in bytes. One that
 * is not charged for yet stays.
 */
export async function dropReplies(
  database: Queryable,
  bounds: { nowMs: number; bytesMax: number },
): Promise<void> {
  await database.execute(sql`
    DELETE FROM ${replies} WHERE payment_id IN (
      SELECT kept.payment_id FROM (
        SELECT payment_id, expires_at_ms, sum(octet_length(body)) OVER (ORDER BY expires_at_ms DESC, payment_id) AS total
        FROM ${replies}) AS kept
      JOIN ${claims} AS claim ON claim.id = kept.payment_id
      WHERE ${isCharged} AND (kept.expires_at_ms < ${bounds.nowMs}
          OR (kept.total > ${bounds.bytesMax} AND claim.state IN ('sold', 'delivered'))))`)
}
