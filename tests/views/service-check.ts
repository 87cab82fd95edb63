import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { Definition } from './engine-definitions.ts'

/** The setting that says how many entries count in the tables of `makePlainTables`. */
const leafSetting = 'plain.leaf'

/**
 * A schema with `c_1`, `c_2` ... that hold the live records of collections as of a position. They do not use what the
 * service notes of versions that were replaced, but for the last, whose versions a unique field may replace.
 */
export async function makePlainTables(
  database: Database,
  { schema, plain, tables }: { schema: string; plain: string; tables: readonly string[] },
): Promise<void> {
  await database.execute(sql`CREATE SCHEMA ${sql.id(plain)}`)
  const upTo = sql`current_setting(${sql.literal(leafSetting)})::int8`
  for (const [at, table] of tables.entries()) {
    const isLast = at === tables.length - 1
    const live = isLast
      ? sql`SELECT leaf, data, deleted FROM ${sql.id(schema, table)} WHERE leaf < ${upTo} AND coalesce(superseded_by >= ${upTo}, true)`
      : sql`SELECT DISTINCT ON (key) leaf, data, deleted FROM ${sql.id(schema, table)} WHERE leaf < ${upTo} ORDER BY key, leaf DESC`
    await database.execute(
      sql`CREATE VIEW ${sql.id(plain, `c_${at + 1}`)} AS SELECT leaf, data, deleted, NULL::int8 AS superseded_by FROM (${live}) AS live`,
    )
  }
}

export type ViewNow = {
  readonly status: string
  readonly reason: string | null
  readonly leaf: number
  readonly height: number
  readonly sequence: number
  readonly wantedLeaf: number
  /** Where the tables of the collections are. */
  readonly watermark: number
}

/** How far views are, by id. */
export async function viewsNow(
  database: Database,
  schema: string,
): Promise<ReadonlyMap<string, ViewNow>> {
  const rows = await database.query<{ view: string; now: string }>(sql`
    SELECT view, json_build_object('status', status, 'reason', reason, 'leaf', state.leaf, 'height', state.height,
      'sequence', state.sequence, 'wantedLeaf', wanted_leaf, 'watermark', watermark.leaf)::text AS now
    FROM ${sql.id(schema, 'view_state')} AS state CROSS JOIN ${sql.id(schema, 'watermark')} AS watermark`)
  return new Map(rows.map(({ view, now }) => [view, JSON.parse(now)]))
}

type Asked = {
  readonly schema: string
  readonly table: string
  readonly definition: Definition
  readonly leaf: number
  /** A reply with all rows of the view. */
  readonly listed: string | undefined
}

/** Rows that a view lacks, has beyond its definition, or gives otherwise to a reader; undefined where there are none. */
export async function wrongRows(
  database: Database,
  { schema, table, definition, leaf, listed }: Asked,
): Promise<string | undefined> {
  const { columns, plain } = definition
  const row = columns.length === 0 ? 'plain.data' : 'to_jsonb(plain)'
  const want = `SELECT ${row} AS row FROM (${plain}) AS plain`
  const have = `SELECT data AS row FROM "${schema}"."${table}" WHERE NOT deleted`
  const read = `SELECT row FROM jsonb_array_elements($1::jsonb -> 'records') AS list(row)`
  const wrong = [
    ...difference(['missing', want], ['surplus', have]),
    ...(listed === undefined ? [] : difference(['unread', have], ['misread', read])),
    `SELECT 'torn' AS what, data AS row FROM "${schema}"."${table}" WHERE body::jsonb <> data`,
  ]
  const values = listed === undefined ? [] : [listed]
  const rows = await database.transaction(async (tx) => {
    await tx.query(sql`SELECT set_config(${leafSetting}, ${String(leaf)}, true)`)
    return tx.query<{ what: string; row: string }>(
      sql.compiled(
        `SELECT what, row::text FROM (${wrong.join(' UNION ALL ')}) AS wrong LIMIT 20`,
        values,
      ),
    )
  })
  return rows.length === 0 ? undefined : rows.map(({ what, row }) => `${what} ${row}`).join('\n')
}

type Named = readonly [what: string, rows: string]

function difference([lacks, one]: Named, [beyond, other]: Named): string[] {
  const less = (what: string, from: string, of: string) =>
    `SELECT '${what}' AS what, row FROM (${from} EXCEPT ALL ${of}) AS difference`
  return [less(lacks, one, other), less(beyond, other, one)]
}
