import { requirePresent } from '../../../base/assert.ts'
import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { type Claim, type ClaimRow, claimColumns, claims, toClaim } from './claim-store.ts'

/** A place in a list of claims by `at`, which is the time or validity they are listed by. */
export type ClaimCursor = { readonly at: bigint; readonly id: string }

/** The index `claim_open` has these. */
const isOpen = sql`state IN ('claimed', 'ready', 'held', 'owed', 'answered')`
/** The index `claim_ended` has these: a payment without money of its own never ends. */
const mayEnd = sql`state IN ('ready', 'failed', 'sold') AND valid_before < 1000000000000000`
/** One that failed is looked at again at its end, or when it is brought. */
const readyMs = 600_000

/** Claims that are not booked and older than a moment ago, oldest first, after the cursor; not those of rare looks. */
export async function listOpenClaims(
  database: Queryable,
  page: { olderThanMs: number; after: ClaimCursor; limit: number },
): Promise<Claim[]> {
  const rows = await database.query<ClaimRow>(sql`
    SELECT ${claimColumns} FROM ${claims}
    WHERE ${isOpen} AND created_at_ms < ${page.olderThanMs}::int8 AND next_look_ms IS NULL
      AND (state <> 'ready' OR created_at_ms > ${page.olderThanMs - readyMs}::int8)
      AND (created_at_ms, id) > (${page.after.at}::int8, ${page.after.id}::text)
    ORDER BY created_at_ms, id LIMIT ${page.limit}`)
  return rows.map(toClaim)
}

/** Lists ids of an application's open claims since then whose settlement is not known; a hundred at most. */
export async function listOpenPayments(
  database: Queryable,
  app: string,
  sinceMs: number,
): Promise<string[]> {
  const rows = await database.query<{ id: string }>(sql`
    SELECT id FROM ${claims}
    WHERE state IN ('claimed', 'ready') AND app = ${app} AND created_at_ms > ${sinceMs}::int8
    ORDER BY created_at_ms, id LIMIT 100`)
  return rows.map(({ id }) => id)
}

/**
 * Lists the payments that a voucher of a channel, up to this total, was used for. A channel may have many, whose texts are
 * searched first: to read each as JSON takes five times as long.
 */
export async function listVoucherPayments(
  database: Queryable,
  { channel, maxClaimable }: { readonly channel: string; readonly maxClaimable: bigint },
): Promise<string[]> {
  const text = `"maxClaimable":"${maxClaimable}"`
  const rows = await database.query<{ payment: string }>(sql`
    SELECT payment FROM ${claims} WHERE identity >= ${channel}::text AND identity < ${`${channel}~`}::text
      AND position(${text}::text IN payment) > 0 AND payment::jsonb -> 'channel' ->> 'maxClaimable' = ${String(maxClaimable)}`)
  return rows.map(({ payment }) => payment)
}

/**
 * Reads the number of claims that are not booked, the time of the oldest one, and the bytes of kept replies. Those of rare
 * looks are left out: strangers make them, and they stay for good.
 */
export async function readBacklog(
  database: Queryable,
): Promise<{ open: number; oldestMs: number | undefined; keptBytes: number }> {
  const [row] = await database.query<{ open: bigint; oldest: bigint | null; kept: bigint }>(sql`
    SELECT count(*)::int8 AS open, min(created_at_ms) AS oldest,
      pg_total_relation_size('operations.kept_reply')::int8 AS kept
    FROM ${claims} WHERE ${isOpen} AND next_look_ms IS NULL`)
  const { open, oldest, kept } = requirePresent(row, 'a count')
  return {
    open: Number(open),
    oldestMs: oldest === null ? undefined : Number(oldest),
    keptBytes: Number(kept),
  }
}

/**
 * Lists claims whose payment others could still execute when it failed, or when a balance was charged in its place, and
 * can no longer: their outcome is certain now. Those of rare looks are not among them. `beforeSeconds` is a time on the
 * payments' own clock.
 */
export async function listEndedClaims(
  database: Queryable,
  page: { beforeSeconds: number; after: ClaimCursor; limit: number },
): Promise<Claim[]> {
  const rows = await database.query<ClaimRow>(sql`
    SELECT ${claimColumns} FROM ${claims}
    WHERE ${mayEnd} AND valid_before < ${page.beforeSeconds}::numeric AND next_look_ms IS NULL
      AND (valid_before, id) > (${String(page.after.at)}::numeric, ${page.after.id}::text)
    ORDER BY valid_before, id LIMIT ${page.limit}`)
  return rows.map(toClaim)
}

/** A claim whose money lies at its quote's own address, with the number of its failed sweeps. */
export type UnsweptClaim = {
  readonly id: string
  readonly network: string
  readonly amount: bigint
  readonly quote_id: string
  readonly tries: number
  readonly created_at_ms: bigint
}

/**
 * Claims on these networks whose money has arrived, is worth the gas and was not swept for good yet, oldest first, after
 * the cursor; without those of `except`, and those whose money a chain took back for good.
 */
export async function listUnsweptClaims(
  database: Queryable,
  page: {
    networks: readonly { id: string; sweepMinimum: bigint }[]
    triesMax: number
    after: ClaimCursor
    limit: number
    except?: readonly string[]
  },
): Promise<UnsweptClaim[]> {
  const rows = await database.query<Omit<UnsweptClaim, 'amount'> & { amount: string }>(sql`
    SELECT claim.id, swept.network, amount, quote_id, sweep AS tries, created_at_ms
    FROM ${claims} AS claim
    JOIN unnest(
      ${page.networks.map(({ id }) => id)}::text[],
      ${page.networks.map(({ sweepMinimum }) => String(sweepMinimum))}::numeric[]
    ) AS swept (network, least) ON split_part(claim.identity, '/', 1) = swept.network AND amount >= swept.least
    WHERE sweep IS NOT NULL AND sweep < ${page.triesMax}::int4 AND settled_by IS NOT NULL
      AND (created_at_ms, claim.id) > (${page.after.at}::int8, ${page.after.id}::text)
      AND NOT claim.id = ANY(${page.except ?? []}::text[])
      AND NOT EXISTS (SELECT 1 FROM system.reversal AS taken WHERE taken.payment_id = claim.id)
    ORDER BY created_at_ms, id LIMIT ${page.limit}`)
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }))
}

/** Notes what became of a sweep: it is done, or came to nothing and may be tried again. */
export async function noteSweep(
  database: Queryable,
  id: string,
  outcome: 'done' | 'failed',
): Promise<void> {
  const next = outcome === 'done' ? sql`NULL` : sql`sweep + 1`
  await database.execute(sql`UPDATE ${claims} SET sweep = ${next} WHERE id = ${id}`)
}
