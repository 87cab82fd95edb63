import { BlockStore } from '../../chain/block-store.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import type { ChainPlace } from '../maintenance.ts'

type Difference = Readonly<Record<string, unknown>>

/**
 * Checks the ledger: debits equal credits, no payer or seller ever was in debt, nothing negative is on its way out, and
 * every sale follows its deposit, unless a balance was charged for it.
 */
export async function auditLedger(database: Database): Promise<Difference | undefined> {
  const [sum] = await database.query<{ total: string }>(
    sql`SELECT coalesce(sum(balance), 0) AS total FROM system.account`,
  )
  if (BigInt(sum?.total ?? 0) !== 0n)
    return { what: 'sum of all balances', expected: '0', found: sum?.total }
  const [debtor] = await database.query<{ account: string; balance: string }>(
    sql`SELECT account, balance_after AS balance FROM system.posting
      WHERE account NOT LIKE 'outside:%' AND balance_after < 0 ORDER BY leaf, line LIMIT 1`,
  )
  if (debtor !== undefined)
    return { what: `balance of ${debtor.account}`, expected: '0 or more', found: debtor.balance }
  const [unpaid] = await database.query<{ payment_id: string }>(sql`
    SELECT sale.payment_id FROM system.sale AS sale
    LEFT JOIN system.settled_payment AS paid ON paid.payment_id = sale.payment_id
    WHERE (paid.leaf IS NULL OR paid.leaf > sale.leaf) AND sale.body::jsonb ->> 'paid_from' IS NULL ORDER BY sale.leaf LIMIT 1`)
  return (
    unpaid && {
      what: `sale of ${unpaid.payment_id}`,
      expected: 'a deposit before it',
      found: 'none',
    }
  )
}

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
