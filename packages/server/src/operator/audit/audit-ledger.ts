import { BlockStore } from '../../chain/block-store.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { unitParts } from '../../model/storage-fee.ts'
import type { ChainPlace } from '../maintenance.ts'
import { compareChannels } from './audit-channels.ts'

type Difference = Readonly<Record<string, unknown>>

/**
 * Checks the ledger: debits equal credits, no payer or seller ever was in debt, nothing negative is on its way out, and
 * every sale follows its deposit, unless a balance was charged for it, and what was paid to a seller's own wallet is on no
 * balance.
 */
export async function auditLedger(database: Database): Promise<Difference | undefined> {
  const [sum] = await database.query<{ total: string }>(
    sql`SELECT coalesce(sum(balance), 0) AS total FROM system.account`,
  )
  if (BigInt(sum?.total ?? 0) !== 0n)
    return { what: 'sum of all balances', expected: '0', found: sum?.total }
  const [debtor] = await database.query<{ account: string; balance: string }>(
    sql`SELECT account, balance_after AS balance FROM system.posting
      WHERE account !~ '^((outside|channel|escrow):|losses$)' AND balance_after < 0 ORDER BY leaf, line LIMIT 1`,
  )
  if (debtor !== undefined)
    return { what: `balance of ${debtor.account}`, expected: '0 or more', found: debtor.balance }
  const [unlike] = await database.query<{ account: string; expected: string; found: string }>(
    compareChannels,
  )
  if (unlike !== undefined) {
    const { account, expected, found } = unlike
    return { what: `balance of ${account}`, expected, found }
  }
  const [untold] = await database.query<{ id: string; expected: string; found: string }>(
    compareReversals,
  )
  if (untold !== undefined) return { what: `reversal of ${untold.id}`, ...untold }
  const [unpaid] = await database.query<{ payment_id: string }>(sql`
    SELECT sale.payment_id FROM system.sale AS sale
    LEFT JOIN system.settled_payment AS paid ON paid.payment_id = sale.payment_id
    WHERE (paid.leaf IS NULL OR paid.leaf > sale.leaf) AND sale.body::jsonb ->> 'paid_from' IS NULL ORDER BY sale.leaf LIMIT 1`)
  if (unpaid !== undefined)
    return {
      what: `sale of ${unpaid.payment_id}`,
      expected: 'a deposit before it',
      found: 'none',
    }
  const [astray] = await database.query<{ payment_id: string; expected: string; found: string }>(
    compareDirect,
  )
  if (astray !== undefined) return { what: `sale of ${astray.payment_id}`, ...astray }
  const [wrongFee] = await database.query<{ id: string; expected: string; found: string }>(
    compareStorageFees,
  )
  return wrongFee && { what: `fee ${wrongFee.id}`, ...wrongFee }
}

/**
 * Each fee for storage is computed from the one before it: whole units by the bytes and the price, the rest carried, and
 * owed what is not paid. Its id, and the movement on the account, say the same.
 */
const compareStorageFees = sql`
  SELECT id, expected, found FROM (
    SELECT *, lag(owed, 1, 0::numeric) OVER one AS owed_before, lag(carried, 1, 0::numeric) OVER one AS carried_before
    FROM system.storage_fee WINDOW one AS (PARTITION BY app ORDER BY leaf)) AS fee,
  LATERAL (SELECT carried_before + bytes * price AS parts, ${String(unitParts)}::numeric AS unit) AS cost,
  LATERAL (SELECT coalesce(-sum(amount), 0) AS moved FROM system.posting AS line
    WHERE line.leaf = fee.leaf AND line.account = 'app:' || fee.app) AS booked,
  LATERAL (SELECT concat_ws(' ', concat('storage_', day, '_', price, '_', bytes, '_', app), div(parts, unit), mod(parts, unit),
      owed_before + div(parts, unit) - moved, greatest(moved, 0)) AS expected,
    concat_ws(' ', id, amount, carried, owed, paid) AS found) AS told
  WHERE expected <> found OR owed < 0 ORDER BY leaf LIMIT 1`

/**
 * A reversal says what its postings move: what came from outside or went there, what an account gave back or got, and the
 * operator's loss. Nothing came of a payment that went to its seller's own wallet. The losses are those of reversals.
 */
const compareReversals = sql`
  SELECT id, expected, found FROM (
    SELECT payment_id AS id, reversal.leaf, concat_ws(' ', CASE WHEN outside = 0 THEN amount ELSE abs(outside) END,
      CASE WHEN outside = 0 THEN 0 ELSE abs(given) END, -losses) AS expected, concat_ws(' ', amount, moved, lost) AS found
    FROM system.reversal AS reversal,
    LATERAL (SELECT coalesce(sum(line.amount) FILTER (WHERE account LIKE 'outside:%'), 0) AS outside,
      coalesce(sum(line.amount) FILTER (WHERE account = 'losses'), 0) AS losses,
      coalesce(sum(line.amount) FILTER (WHERE account !~ '^(outside:|losses$)'), 0) AS given
      FROM system.posting AS line WHERE line.leaf = reversal.leaf) AS booked
    UNION ALL
    SELECT 'losses', NULL, coalesce((SELECT sum(-lost) FROM system.reversal), 0)::text,
      coalesce((SELECT balance FROM system.account WHERE account = 'losses'), 0)::text) AS told
  WHERE expected <> found ORDER BY leaf LIMIT 1`

/** The whole charge, and nothing else, leaves the books with a sale that was paid to its seller's own wallet. */
const compareDirect = sql`
  SELECT payment_id, expected, found FROM system.sale AS sale, LATERAL (SELECT body::jsonb AS sold) AS read,
  LATERAL (SELECT concat_ws(' ', CASE WHEN sold ? 'paid_to' THEN concat('-', sold ->> 'amount', ' app:', sold ->> 'app', ' ',
    sold ->> 'amount', ' outside:', sold ->> 'network') END) AS expected) AS told,
  LATERAL (SELECT coalesce(string_agg(concat(line ->> 'amount', ' ', line ->> 'account'), ' ' ORDER BY (line ->> 'amount')::numeric), '') AS found
    FROM jsonb_array_elements(sold -> 'postings') AS line WHERE line ? 'kind') AS booked
  WHERE expected <> found ORDER BY leaf LIMIT 1`

/** Checks that every sale was read from a chain that is at least as long as the sale states. */
export async function auditReach(
  database: Database,
  places: readonly ChainPlace[],
): Promise<Difference | undefined> {
  const reached = await database.query<{ app: string; height: bigint; by: string }>(sql`
    SELECT app, max(height) AS height, (array_agg(by ORDER BY height DESC))[1] AS by FROM (
      SELECT body::jsonb ->> 'app' AS app, (body::jsonb -> 'as_of' ->> 'block_height')::int8 AS height, 'sale of ' || payment_id AS by
      FROM system.sale
      UNION ALL SELECT app, write_after, 'claim ' || id FROM operations.claim) AS told
    WHERE height IS NOT NULL GROUP BY app ORDER BY app`)
  for (const { app, height, by } of reached) {
    const place = places.find((one) => one.app === app)
    const last = place && (await new BlockStore(database, place.schema).last())
    if (Number(height) > (last?.height ?? 0))
      return {
        chain: app,
        what: `block ${height} of ${app}, which the ${by} speaks of`,
        expected: 'a block',
        found: place === undefined ? 'no such chain' : `${last?.height ?? 0} blocks`,
      }
  }
  return undefined
}
