import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../../base/assert.ts'
import { encodeBytesArray, encodeTextArray } from '../../../database/binary-array.ts'
import type { Queryable } from '../../../database/database.ts'
import { type FirstPiece, printFirstPiece, readRest } from '../../../database/long-value.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import type { SourceName } from '../../../model/source-names.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import { soldFileType } from '../replies/sold-file.ts'
import { type Claim, type ClaimUse, claims } from './claim-store.ts'
import { decideStep } from './payment-states.ts'

export const replies = sql.id('operations', 'kept_reply')

/**
 * The replies that name a sold file, and its folder and hash in their text, as the index has them. They are no JSON to
 * PostgreSQL, as reading bytes as text is not immutable; quotes within a name are escaped, so no name can look like them.
 * A migration has these texts: they do not change.
 */
export const soldFile = {
  isSold: sql`content_type = ${sql.literal(soldFileType)}`,
  folder: sql`substring(encode(body, 'escape') FROM '"folder":([0-9]+)')`,
  sha256: sql`substring(encode(body, 'escape') FROM '"sha256":"([0-9a-f]{64})"')`,
} as const

/**
 * True of a reply that is to go as soon as it is charged for: its time was over when its claim was made. None is over
 * before.
 */
const isOver = sql`kept.expires_at_ms <= claim.created_at_ms`

/** `sale` is the body of the ledger entry that charges for it; `sources` are what its records come from. */
export type KeptReply = {
  readonly status: number
  readonly body: Buffer
  /** JSON where there is none. */
  readonly contentType: string | null
  readonly sale: string
  readonly sources: readonly SourceName[]
}

/** The same as its row has it: the sale is null where the ledger has it from the same commit. */
export type StoredReply = Omit<KeptReply, 'sale'> & { readonly sale: string | null }

/** An answer to be kept, for its own money that came by `settledBy`, or, where that is null, for what is held. */
export type ReplyToKeep = KeptReply & {
  readonly settledBy: string | null
  readonly expiresAtMs: number
}

/** An answer to be kept, the state that its claim is known to be in, and the use that it was made for. */
export type KeepOrder = {
  readonly claim: Pick<Claim, 'id' | 'state'> & ClaimUse
  readonly event: 'kept' | 'served'
  readonly keeping: ReplyToKeep
}

/** Gives the bytes of an answer. */
export function countBytes({ keeping }: KeepOrder): number {
  return keeping.body.length
}

/**
 * Keeps what was bought before it is charged, so that no crash can charge without an answer. Returns what is kept:
 * the first answer, where there is one already; undefined where the claim is not in that state any more, or is by now for
 * another use. The answer of a claim that was ready is given by who knows its transaction by now, and takes the place of
 * what was kept.
 */
export async function keepReply(
  database: Queryable,
  order: KeepOrder,
): Promise<KeptReply | undefined> {
  return (await keepReplies(database, [order]))[0]
}

/** The same for several claims, by one statement. */
export async function keepReplies(
  database: Queryable,
  orders: readonly KeepOrder[],
): Promise<(KeptReply | undefined)[]> {
  const rows = orders.map(({ claim, event, keeping }) => ({
    ...keeping,
    ...claim,
    cap: String(claim.cap),
    to: decideStep(claim.state, event).to,
  }))
  const moved = await database.query<{ id: string; isFresh: boolean }>(sql`
    WITH asked AS (
      SELECT * FROM unnest(
        ${rows.map(({ id }) => id)}::text[], ${rows.map(({ state }) => state)}::text[], ${rows.map(({ to }) => to)}::text[],
        ${rows.map((row) => row.request_hash)}::text[], ${rows.map(({ terms }) => terms)}::text[], ${rows.map(({ cap }) => cap)}::numeric[],
        ${rows.map(({ settledBy }) => settledBy)}::text[], ${rows.map(({ status }) => status)}::int4[],
        ${encodeBytesArray(rows.map(({ body }) => body))}::bytea[], ${rows.map(({ contentType }) => contentType)}::text[],
        ${encodeTextArray(rows.map((row) => row.sale))}::text[], ${rows.map(joinSources)}::text[], ${rows.map(({ expiresAtMs }) => expiresAtMs)}::int8[])
      AS one (id, state, next_state, request_hash, terms, cap, settled_by, status, body, content_type, sale, sources, expires_at_ms)),
    moved AS (
      UPDATE ${claims} AS claim SET state = asked.next_state, reason = NULL, next_look_ms = NULL,
        settled_by = coalesce(asked.settled_by, claim.settled_by)
      FROM asked WHERE claim.id = asked.id AND claim.state = asked.state AND claim.request_hash = asked.request_hash
        AND claim.terms IS NOT DISTINCT FROM asked.terms AND claim.cap = asked.cap RETURNING claim.id, claim.created_at_ms),
    kept AS (
      INSERT INTO ${replies} AS kept (payment_id, status, body, content_type, sale, sources, expires_at_ms)
      SELECT id, status, body, content_type, sale, sources, expires_at_ms FROM asked WHERE id IN (SELECT id FROM moved)
      ON CONFLICT (payment_id) DO UPDATE SET status = excluded.status, body = excluded.body,
        content_type = excluded.content_type, sale = excluded.sale, sources = excluded.sources,
        expires_at_ms = CASE WHEN EXISTS (SELECT 1 FROM moved AS claim WHERE claim.id = kept.payment_id AND ${isOver})
          THEN kept.expires_at_ms ELSE excluded.expires_at_ms END
      WHERE (SELECT asked.state FROM asked WHERE asked.id = excluded.payment_id) = 'ready' RETURNING payment_id)
    SELECT id, id IN (SELECT payment_id FROM kept) AS "isFresh" FROM moved`)
  const known = new Map(moved.map((row) => [row.id, row.isFresh]))
  return Promise.all(
    orders.map(async ({ claim: { id }, keeping }) => {
      const isFresh = known.get(id)
      if (isFresh === undefined) return undefined
      const before = isFresh ? undefined : await findReply(database, id)
      return before === undefined ? keeping : requireOwed(before)
    }),
  )
}

/** Keeps the answer of a claim whose money is yet to be asked for; that of an earlier try, which failed, goes. */
export async function putReply(tx: Queryable, id: string, keeping: ReplyToKeep): Promise<void> {
  const { status, body, contentType, sale, expiresAtMs } = keeping
  const sources = joinSources(keeping)
  await tx.execute(sql`
    INSERT INTO ${replies} (payment_id, status, body, content_type, sale, sources, expires_at_ms)
    VALUES (${id}, ${status}, ${body}, ${contentType}, ${sale}, ${sources}, ${expiresAtMs}::int8)
    ON CONFLICT (payment_id) DO UPDATE SET status = excluded.status, body = excluded.body,
      content_type = excluded.content_type, sale = excluded.sale, sources = excluded.sources,
        expires_at_ms = excluded.expires_at_ms`)
}

/** Prints, as a part of a WITH, what keeps the answers of payments whose sales are in the block beside it. */
export function printReplyInsertion(
  kept: readonly { readonly id: string; readonly keeping: ReplyToKeep }[],
): SqlStatement {
  const rows = kept.map(({ id, keeping }) => ({ id, ...keeping }))
  return sql`kept AS (INSERT INTO ${replies} (payment_id, status, body, content_type, sources, expires_at_ms)
    SELECT * FROM unnest(
      ${rows.map(({ id }) => id)}::text[], ${rows.map(({ status }) => status)}::int4[], ${encodeBytesArray(rows.map(({ body }) => body))}::bytea[],
      ${rows.map(({ contentType }) => contentType)}::text[], ${rows.map(joinSources)}::text[], ${rows.map(({ expiresAtMs }) => expiresAtMs)}::int8[]))`
}

/** Takes an answer that is yet to be charged for, and has its sale. */
export function requireOwed(stored: StoredReply): KeptReply {
  return { ...stored, sale: requirePresent(stored.sale, 'the sale of an answer that is owed') }
}

export async function findReply(
  database: Queryable,
  paymentId: string,
): Promise<StoredReply | undefined> {
  const [column, rows] = [sql.id('body'), sql`FROM ${replies} WHERE payment_id = ${paymentId}`]
  for (;;) {
    const [row] = await database.query<
      Omit<StoredReply, 'sources' | 'body'> & { sources: SourceName[] | null } & FirstPiece
    >(sql`
      SELECT status, content_type AS "contentType", sale, string_to_array(sources, ' ') AS sources,
        ${printFirstPiece(column)} ${rows}`)
    if (row === undefined) return undefined
    const body = await readRest(database, { column, rows }, row)
    const { status, contentType, sale, sources } = row
    if (body !== undefined) return { status, body, contentType, sale, sources: sources ?? [] }
  }
}

/** Lists the bodies of kept replies of a content type. */
export async function listReplyBodies(database: Queryable, contentType: string): Promise<Buffer[]> {
  const rows = await database.query<{ body: Buffer }>(
    sql`SELECT body FROM ${replies} WHERE content_type = ${contentType}`,
  )
  return rows.map(({ body }) => body)
}

/**
 * Lists those of these files of a folder that kept replies name. The index gives one reply of each: a shop has many, and
 * whoever asks keeps others waiting.
 */
export async function listNamedByReplies(
  database: Queryable,
  { folder, hashes }: { readonly folder: number; readonly hashes: readonly string[] },
): Promise<string[]> {
  const { isSold, folder: soldFolder, sha256: soldHash } = soldFile
  const rows = await database.query<{ sha256: string }>(sql`
    SELECT wanted.sha256 FROM unnest(${[...hashes]}::text[]) AS wanted (sha256), LATERAL (
      SELECT FROM ${replies}
      WHERE ${isSold} AND ${soldFolder} = ${String(folder)} AND ${soldHash} = wanted.sha256 LIMIT 1) AS sold`)
  return rows.map(({ sha256 }) => sha256)
}

/** A reply that is not charged for yet stays: the money that came for it must buy something. */
const isCharged = sql`(claim.state NOT IN ('ready', 'owed', 'answered') OR EXISTS (
  SELECT 1 FROM ${sql.id('system', 'sale')} AS sale WHERE sale.payment_id = claim.id))`

/**
 * Drops replies with records of this source of an application, whoever sold them, and those that it sold itself and that
 * have this text. A reply whose sources were not noted is dropped where the application had a part in its sale. One that
 * is not charged for yet is past its time, so that it goes as soon as it is.
 */
export async function dropRepliesWith(
  database: Queryable,
  wanted: { readonly app: string; readonly source: SourceName; readonly text: string },
): Promise<void> {
  const account = toApplicationAccount(wanted.app)
  await database.execute(sql`
    UPDATE ${replies} AS kept SET expires_at_ms = claim.created_at_ms FROM ${claims} AS claim
    WHERE claim.id = kept.payment_id AND (${wanted.source} = ANY(string_to_array(kept.sources, ' '))
      OR (claim.app = ${wanted.app} AND position(convert_to(${wanted.text}, 'UTF8') IN kept.body) > 0)
      OR (kept.sources IS NULL
        AND (claim.app = ${wanted.app} OR position(${JSON.stringify(account)} IN kept.sale) > 0)))`)
  await database.execute(sql`
    DELETE FROM ${replies} WHERE payment_id IN (
      SELECT kept.payment_id FROM ${replies} AS kept JOIN ${claims} AS claim ON claim.id = kept.payment_id
      WHERE ${isOver} AND ${isCharged})`)
}

/** Prints the sources as the table has them. */
export function joinSources({ sources }: Pick<KeptReply, 'sources'>): string {
  return sources.join(' ')
}

/**
 * Drops kept replies that are past their time, or that nobody can pay for any more, and those that have no room. One that
 * is not charged for yet stays. Each claim is looked up by itself, and those of answers alone that may have to go: a plan
 * for all of them reads all claims there ever were.
 */
export async function dropReplies(
  database: Queryable,
  { nowMs, bytesMax }: { readonly nowMs: number; readonly bytesMax: number },
): Promise<void> {
  // An answer that was kept with its sale is never void.
  await database.execute(sql`
    DELETE FROM ${replies} WHERE payment_id IN (
      SELECT kept.payment_id FROM ${replies} AS kept CROSS JOIN LATERAL (${printClaim(sql`id, state, created_at_ms`)}) AS claim
      WHERE (kept.expires_at_ms <= ${nowMs}::int8 OR kept.sale IS NOT NULL)
        AND ${isCharged} AND (kept.expires_at_ms < ${nowMs}::int8 OR ${isOver} OR claim.state = 'void'))`)
  await dropExcess(database, bytesMax)
}

/** Prints the look at the claim of a kept reply. */
function printClaim(columns: SqlStatement): SqlStatement {
  return sql`SELECT ${columns} FROM ${claims} AS one WHERE one.id = kept.payment_id LIMIT 1`
}

/**
 * Drops bought answers beyond the bound. Sellers share the room, and the buyers of one seller share that one's part, so
 * that nobody who buys much takes the answers of others. A short answer takes no more than its entry in the log, which
 * stays, and is kept; so is a sold file, whose buyer reads one range after the other by it. An answer that is not paid for
 * yet has a room of its own.
 */
async function dropExcess(database: Queryable, bytesMax: number): Promise<void> {
  const isLong = sql`octet_length(kept.body) > ${limits.shortReplyBytesMax}::int4`
  // No claim is looked up while all have room.
  await database.execute(sql`
    WITH bought AS MATERIALIZED (
      SELECT kept.payment_id, kept.expires_at_ms, octet_length(kept.body) AS bytes, claim.app, claim.payer
      FROM ${replies} AS kept
        CROSS JOIN LATERAL (${printClaim(sql`app, split_part(identity, '/', 3) AS payer, state`)}) AS claim
      WHERE ${isLong} AND claim.state IN ('sold', 'delivered')
        AND (SELECT sum(octet_length(kept.body)) FROM ${replies} AS kept WHERE ${isLong}) > ${bytesMax}::int8),
    buyer AS (SELECT app, payer, sum(bytes) AS bytes FROM bought GROUP BY app, payer),
    seller AS (SELECT app, sum(bytes) AS bytes FROM buyer GROUP BY app),
    seller_share AS (
      SELECT ${printShare(sql`${bytesMax}::int8`)} AS share FROM (
        SELECT bytes, ${printPlace({ within: sql.empty, name: sql`app` })} FROM seller) AS placed),
    buyer_share AS (
      SELECT app, ${printShare(sql`share`)} AS share FROM (
        SELECT app, bytes, share, ${printPlace({ within: sql`PARTITION BY app`, name: sql`payer` })}
        FROM buyer CROSS JOIN seller_share) AS placed GROUP BY app)
    DELETE FROM ${replies} WHERE payment_id IN (
      SELECT payment_id FROM (
        SELECT payment_id, bytes, share,
          sum(bytes) FILTER (WHERE bytes <= share) OVER (PARTITION BY app, payer ORDER BY expires_at_ms DESC, payment_id) AS total
        FROM bought JOIN buyer_share USING (app)) AS newest
      WHERE bytes > share OR total > share)`)
}

/** Prints the bytes of those before a row in the order of their bytes, and the number of rows from it on. */
function printPlace({ within, name }: { within: SqlStatement; name: SqlStatement }): SqlStatement {
  return sql`sum(bytes) OVER (${within} ORDER BY bytes, ${name}) - bytes AS before,
    row_number() OVER (${within} ORDER BY bytes DESC, ${name} DESC) AS rest`
}

/**
 * Prints the share of each in a room: as much for one as for another, where what some do not need is for the rest. It
 * grows from row to row as long as all before have room, and shrinks after the first one that has not.
 */
function printShare(room: SqlStatement): SqlStatement {
  return sql`max((${room} - before) / rest)`
}
