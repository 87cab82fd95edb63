import { limits } from '@tollbase/contract/limits'
import { assert, present } from '../../base/assert.ts'
import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { viewSession } from '../../projections/view-projection.ts'
import type { Position } from '../../projections/view-state.ts'

/**
 * Makes a transaction one that fills views: others can see that by its name, which begins with `viewSession`, and its
 * plans are those of the tables as they are now. The process of it.
 */
export async function enterSession(tx: Queryable, name: string): Promise<number> {
  assert(name.startsWith(viewSession), 'the name of a session that fills views')
  const [row] = await tx.query<{ pid: number }>(sql`
    SELECT pg_backend_pid() AS pid, set_config('application_name', ${name}, true),
      set_config('plan_cache_mode', 'force_custom_plan', true)`)
  return present(row, 'the session').pid
}

/** Gives such a transaction another name. */
export async function renameSession(tx: Queryable, name: string): Promise<void> {
  await tx.query(sql`SELECT set_config('application_name', ${name}, true)`)
}

/** Ends what a session is doing. */
export async function cancelSession(database: Queryable, pid: number): Promise<void> {
  await database.query(sql`SELECT pg_catalog.pg_cancel_backend(${pid}::int4) AS ended`)
}

type WatermarkRow = { readonly leaf: bigint; readonly height: bigint; readonly sequence: number }

export async function watermarkOf(database: Queryable, schema: string): Promise<Position> {
  const [row] = await database.query<WatermarkRow>(
    sql`SELECT leaf, height, sequence FROM ${sql.id(schema, 'watermark')} WHERE id = 1`,
  )
  return positionOf(row)
}

/**
 * The lane, which moves the watermark first of all, waits until this transaction has ended; no statement of it may
 * take longer from now on than one of the lane for the view.
 */
export async function lockedWatermark(tx: Queryable, schema: string): Promise<Position> {
  const [row] = await tx.query<WatermarkRow>(
    sql`SELECT leaf, height, sequence FROM ${sql.id(schema, 'watermark')} WHERE id = 1 FOR UPDATE`,
  )
  const timeout = String(limits.viewAdvanceMs)
  await tx.query(sql`SELECT set_config('statement_timeout', ${timeout}, true)`)
  return positionOf(row)
}

function positionOf(row: WatermarkRow | undefined): Position {
  const { leaf, height, sequence } = present(row, 'the watermark')
  return { leaf: Number(leaf), height: Number(height), sequence }
}

/** The rows of a table. */
export async function rowCount(
  database: Queryable,
  schema: string,
  table: string,
): Promise<number> {
  const [row] = await database.query<{ count: bigint }>(
    sql`SELECT count(*) AS count FROM ${sql.id(schema, table)}`,
  )
  return Number(row?.count ?? 0n)
}

/**
 * The records of a collection that were live when only entries below a leaf counted, from those that are live now:
 * what has changed since is few.
 */
export async function liveBelow(
  database: Queryable,
  schema: string,
  { id, table, below }: { id: string; table: string; below: number },
): Promise<number> {
  const records = sql.id(schema, table)
  const [row] = await database.query<{ count: bigint }>(sql`
    SELECT coalesce((SELECT documents FROM ${sql.id(schema, 'collection_stats')} WHERE collection = ${id}), 0)
      - (SELECT count(*) FROM ${records} WHERE leaf >= ${below} AND superseded_by IS NULL AND NOT deleted)
      + (SELECT count(*) FROM ${records} WHERE superseded_by >= ${below} AND leaf < ${below} AND NOT deleted) AS count`)
  return Number(row?.count ?? 0n)
}

/** The newest version in a collection's table that is older than a leaf. */
export async function newestBelow(
  database: Queryable,
  schema: string,
  { table, below }: { table: string; below: number },
): Promise<WatermarkRow | undefined> {
  const [row] = await database.query<WatermarkRow>(sql`
    SELECT leaf, height, sequence FROM ${sql.id(schema, table)} WHERE leaf < ${below} ORDER BY leaf DESC LIMIT 1`)
  return row
}

/** The leaf of the entry that defines a view. */
export async function leafOfView(
  database: Queryable,
  schema: string,
  id: string,
): Promise<number | undefined> {
  const [row] = await database.query<{ leaf: bigint }>(
    sql`SELECT leaf FROM ${sql.id(schema, 'definition')} WHERE kind = 'view' AND id = ${id}`,
  )
  return row && Number(row.leaf)
}

/** The height of the block that has the leaf. */
export async function blockOfLeaf(
  database: Queryable,
  schema: string,
  leaf: number,
): Promise<number | undefined> {
  const [row] = await database.query<{ height: bigint }>(sql`
    SELECT height FROM ${sql.id(schema, 'block')} WHERE first_leaf <= ${leaf} ORDER BY first_leaf DESC LIMIT 1`)
  return row && Number(row.height)
}
