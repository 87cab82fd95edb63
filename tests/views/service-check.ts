import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'

/** The setting that states how many entries count in the tables of `makeLiveRecords`. */
const leafSetting = 'live.leaf'

type LiveRecords = {
  readonly schema: string
  /** The schema to create. */
  readonly live: string
  readonly tables: readonly { readonly name: string; readonly table: string }[]
}

/**
 * Creates a schema with relations `leaf`, `data` of the live records of collections as of a position. They do not
 * use what the service notes of replaced versions, except for the last one, whose versions a unique field may
 * replace.
 */
export async function makeLiveRecords(
  database: Database,
  { schema, live, tables }: LiveRecords,
): Promise<void> {
  await database.execute(sql`CREATE SCHEMA ${sql.id(live)}`)
  const upTo = sql`current_setting(${sql.literal(leafSetting)})::int8`
  for (const [at, { name, table }] of tables.entries()) {
    const isLast = at === tables.length - 1
    const latest = isLast
      ? sql`SELECT leaf, data, deleted FROM ${sql.id(schema, table)} WHERE leaf < ${upTo} AND coalesce(superseded_by >= ${upTo}, true)`
      : sql`SELECT DISTINCT ON (key) leaf, data, deleted FROM ${sql.id(schema, table)} WHERE leaf < ${upTo} ORDER BY key, leaf DESC`
    await database.execute(
      sql`CREATE VIEW ${sql.id(live, name)} AS SELECT leaf, data FROM (${latest}) AS latest WHERE NOT deleted`,
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
  /** The schema of the collections' tables. */
  readonly watermark: number
}

/** Reads the positions of views, by id. */
export async function readViewsNow(
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
  /** The SQL that gives the column `row`. */
  readonly plain: string
  readonly leaf: number
  /** A reply with all rows of the view. */
  readonly listed: string | undefined
}

/**
 * Finds rows that a view lacks, has beyond its definition, or gives otherwise to a reader; undefined where there
 * are none.
 */
export async function findWrongRows(
  database: Database,
  { schema, table, plain, leaf, listed }: Asked,
): Promise<string | undefined> {
  const have = `SELECT data AS row FROM "${schema}"."${table}" WHERE NOT deleted`
  const read = `SELECT row FROM jsonb_array_elements($1::jsonb -> 'records') AS list(row)`
  const wrong = [
    ...difference(['missing', plain], ['surplus', have]),
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
