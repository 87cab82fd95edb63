import type { SoldPass, SoldUse } from '@tollbase/verify/sale-details'
import { hourMs } from '../base/durations.ts'
import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { getBuyer } from './ledger-entry.ts'

export const meterTableNames = ['metered', 'pass'] as const

/** The names of the units that a use counts; KB are counted in bytes. */
export const meterColumns = [
  'request',
  'row',
  'kb',
  'free_request',
  'free_row',
  'free_kb',
] as const satisfies readonly (keyof SoldUse)[]

type SaleBooking = {
  readonly entry: AppliedEntry
  readonly body: {
    readonly payment_id: string
    readonly uses?: readonly SoldUse[]
    readonly pass?: SoldPass
    readonly buyer?: string
    readonly [field: string]: unknown
  }
}

const counted = sql.join(
  meterColumns.map((name) => sql.id(name)),
  ', ',
)

/** Two tables: the use by each buyer, by period, of things that have tiers or quotas; and the passes that were sold. */
export function buildMeterTables(schema: string): SqlStatement[] {
  const columns = meterColumns.map((name) => sql`${sql.id(name)} numeric NOT NULL`)
  return [
    sql`CREATE TABLE ${sql.id(schema, 'metered')} (
      buyer text NOT NULL, account text NOT NULL, item_kind text NOT NULL, item text NOT NULL, period text NOT NULL,
      ${sql.join(columns, ', ')}, CONSTRAINT metered_pkey PRIMARY KEY (buyer, account, item_kind, item, period))`,
    sql`CREATE TABLE ${sql.id(schema, 'pass')} (
      payment_id text NOT NULL, buyer text NOT NULL, account text NOT NULL, item_kind text NOT NULL, item text NOT NULL,
      from_ms int8 NOT NULL, until_ms int8 NOT NULL, CONSTRAINT pass_pkey PRIMARY KEY (payment_id))`,
    sql`CREATE INDEX pass_buyer ON ${sql.id(schema, 'pass')} (buyer, account, item_kind, item, until_ms)`,
  ]
}

/** Adds what these sales used. */
export async function writeUses(
  tx: Queryable,
  { schema, bookings }: { readonly schema: string; readonly bookings: readonly SaleBooking[] },
): Promise<void> {
  const uses = bookings.flatMap(({ body }) =>
    (body.uses ?? []).map((use) => ({ ...use, buyer: getBuyer(body) })),
  )
  if (uses.length === 0) return
  const sums = meterColumns.map((name) => sql`sum(${sql.id(name)})`)
  const added = meterColumns.map(
    (name) => sql`${sql.id(name)} = ${sql.id('known', name)} + ${sql.id('excluded', name)}`,
  )
  const lists = meterColumns.map((name) => sql`${uses.map((use) => use[name])}::numeric[]`)
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'metered')} AS known (buyer, account, item_kind, item, period, ${counted})
    SELECT buyer, account, item_kind, item, period, ${sql.join(sums, ', ')} FROM unnest(
      ${uses.map(({ buyer }) => buyer)}::text[], ${uses.map(({ account }) => account)}::text[],
      ${uses.map(({ kind }) => kind)}::text[], ${uses.map(({ name }) => name)}::text[],
      ${uses.map(({ period }) => period)}::text[], ${sql.join(lists, ', ')}
    ) AS fresh (buyer, account, item_kind, item, period, ${counted})
    GROUP BY buyer, account, item_kind, item, period ORDER BY buyer, account, item_kind, item, period
    ON CONFLICT (buyer, account, item_kind, item, period) DO UPDATE SET ${sql.join(added, ', ')}`)
}

/** Writes the passes that these sales sold: one that is bought while another is valid begins at the end of that. */
export async function writePasses(
  tx: Queryable,
  { schema, bookings }: { readonly schema: string; readonly bookings: readonly SaleBooking[] },
): Promise<void> {
  for (const { entry, body } of bookings) {
    const { pass } = body
    if (pass === undefined) continue
    const { account, kind, name } = pass
    const buyer = getBuyer(body)
    const table = sql.id(schema, 'pass')
    await tx.execute(sql`
      INSERT INTO ${table} (payment_id, buyer, account, item_kind, item, from_ms, until_ms)
      SELECT ${body.payment_id}, ${buyer}, ${account}, ${kind}, ${name}, start_ms, start_ms + ${pass.hours * hourMs}::int8
      FROM (SELECT greatest(${entry.time}::int8, (SELECT max(until_ms) FROM ${table}
        WHERE buyer = ${buyer} AND account = ${account} AND item_kind = ${kind} AND item = ${name})) AS start_ms) AS fresh`)
  }
}

export type Pass = {
  readonly buyer: string
  readonly account: string
  readonly item_kind: string
  readonly item: string
  readonly from_ms: bigint
  readonly until_ms: bigint
}

/** Finds the pass that a payment bought. */
export async function findPass(
  database: Queryable,
  schema: string,
  paymentId: string,
): Promise<Pass | undefined> {
  const [row] = await database.query<Pass>(sql`
    SELECT buyer, account, item_kind, item, from_ms, until_ms FROM ${sql.id(schema, 'pass')}
    WHERE payment_id = ${paymentId}`)
  return row
}
