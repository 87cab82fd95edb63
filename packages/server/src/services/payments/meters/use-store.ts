import type { MeteredItem, SoldUse } from '@tollbase/verify/sale-details'
import type { Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import type { Usage } from '../../../model/compute-metered-cost.ts'
import { meterColumns } from '../../../projections/metered-use.ts'
import { claims } from '../claims/claim-store.ts'

const table = sql.id('operations', 'use_hold')

/**
 * The uses of quotas and tiers by a purchase, named by the payment's id: first the most that it can use, then what it
 * does. It counts until the ledger's tables have the sale, while the claim is one that may be charged.
 */
export function buildUseTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (
      id text NOT NULL, account text NOT NULL, at_ms int8 NOT NULL, uses jsonb NOT NULL,
      CONSTRAINT use_hold_pkey PRIMARY KEY (id))`,
    sql`CREATE INDEX use_hold_account ON ${table} (account)`,
  ]
}

/** The states of claims that may be charged, or whose money may still come. */
const counting = sql`('ready', 'held', 'owed', 'answered')`

export type UseHold = {
  readonly id: string
  /** The buyer's. */
  readonly account: string
  /** The time at which it counts. */
  readonly atMs: number
  readonly uses: readonly SoldUse[]
}

export async function putUse(tx: Queryable, { id, account, atMs, uses }: UseHold): Promise<void> {
  await tx.execute(sql`
    INSERT INTO ${table} (id, account, at_ms, uses)
    VALUES (${id}, ${account}, ${atMs}::int8, ${JSON.stringify(uses)}::jsonb)
    ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms, uses = excluded.uses`)
}

/** Finds what is held for a claim that its balance pays for, also where another process has kept the answer by now. */
export async function findUse(
  tx: Queryable,
  id: string,
): Promise<{ readonly atMs: number } | undefined> {
  const [row] = await tx.query<{ at_ms: bigint }>(sql`
    SELECT at_ms FROM ${table} AS held WHERE id = ${id}
      AND EXISTS (SELECT 1 FROM ${claims} AS claim WHERE claim.id = held.id AND claim.state IN ('held', 'owed'))`)
  return row && { atMs: Number(row.at_ms) }
}

type UsedOf = MeteredItem & { readonly usage: Usage }

/** Reads what a buyer used in these periods, and what other purchases are about to use: one statement, so one snapshot. */
export async function readUsed(
  tx: Queryable,
  of: {
    /** The claim that asks. */
    readonly id: string
    readonly account: string
    readonly buyer: string
    readonly periods: readonly string[]
  },
): Promise<readonly UsedOf[]> {
  if (of.periods.length === 0) return []
  const names = meterColumns.map((name) => sql.id(name))
  const typed = names.map((name) => sql`${name} numeric`)
  const rows = await tx.query<
    Omit<SoldUse, 'kind' | 'name'> & { item_kind: string; item: string }
  >(sql`
    SELECT account, item_kind, item, period, ${sql.join(names, ', ')} FROM (
      SELECT account, item_kind, item, period, ${sql.join(names, ', ')} FROM system.metered WHERE buyer = ${of.buyer}
      UNION ALL
      SELECT one.account, one.kind, one.name, one.period, ${sql.join(meterColumns.map(printUsed), ', ')}
      FROM ${table} AS held JOIN ${claims} AS claim ON claim.id = held.id,
        jsonb_to_recordset(held.uses) AS one (account text, kind text, name text, period text, ${sql.join(typed, ', ')})
      WHERE held.account = ${of.account} AND held.id <> ${of.id} AND claim.state IN ${counting}
        AND NOT EXISTS (SELECT 1 FROM system.sale AS sale WHERE sale.payment_id = held.id)
    ) AS used WHERE period = ANY(${[...new Set(of.periods)]}::text[])`)
  return rows.map(({ account, item_kind, item, period, ...units }) => ({
    account,
    kind: item_kind as UsedOf['kind'],
    name: item,
    usage: {
      period,
      paid: { request: BigInt(units.request), row: BigInt(units.row), kb: BigInt(units.kb) },
      free: {
        request: BigInt(units.free_request),
        row: BigInt(units.free_row),
        kb: BigInt(units.free_kb),
      },
    },
  }))
}

/** The age from which what is held for a claim that is not open is dropped. */
const dropAgeMs = 60_000

/**
 * Drops what is held for claims that are charged, or never will be. A payment that failed may be tried again at this
 * moment: the row that is waited for is looked at again then, and its claim is not.
 */
export async function dropUses(database: Queryable, nowMs: number): Promise<void> {
  await database.execute(sql`
    DELETE FROM ${table} AS held WHERE at_ms < ${nowMs - dropAgeMs}::int8 AND NOT EXISTS (
      SELECT 1 FROM ${claims} AS claim WHERE claim.id = held.id AND claim.state IN ${counting})`)
}

/**
 * Prints a unit that a purchase uses. The rest of a quota is kept for one whose money is asked for and may never come;
 * but nobody gets to a cheaper tier by what it does not pay for.
 */
function printUsed(name: (typeof meterColumns)[number]): SqlStatement {
  const column = sql`one.${sql.id(name)}`
  if (name.startsWith('free_')) return column
  return sql`CASE WHEN claim.state = 'ready' THEN 0 ELSE ${column} END`
}
