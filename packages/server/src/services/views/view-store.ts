import { assert, requirePresent } from '../../base/assert.ts'
import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { viewAdvanceMs } from '../../projections/live-views.ts'
import { viewSession } from '../../projections/view-sessions.ts'
import type { Position } from '../../projections/view-state.ts'

/**
 * Marks a transaction as one that fills views: its name begins with `viewSession`, and its plans follow the present
 * tables. Returns its process id.
 */
export async function enterSession(tx: Queryable, name: string): Promise<number> {
  assert(name.startsWith(viewSession), 'the name of a session that fills views')
  const [row] = await tx.query<{ pid: number }>(sql`
    SELECT pg_backend_pid() AS pid, set_config('application_name', ${name}, true),
      set_config('plan_cache_mode', 'force_custom_plan', true)`)
  return requirePresent(row, 'the session').pid
}

/** Gives such a transaction another name. */
export async function renameSession(tx: Queryable, name: string): Promise<void> {
  await tx.query(sql`SELECT set_config('application_name', ${name}, true)`)
}

type WatermarkRow = { readonly leaf: bigint; readonly height: bigint; readonly sequence: number }

export async function readWatermark(database: Queryable, schema: string): Promise<Position> {
  const [row] = await database.query<WatermarkRow>(
    sql`SELECT leaf, height, sequence FROM ${sql.id(schema, 'watermark')} WHERE id = 1`,
  )
  return toPosition(row)
}

/**
 * Locks the watermark: the applier, which moves it first of all, waits until this transaction has ended. From now
 * on no statement of the transaction may take longer than one of the applier for the view.
 */
export async function lockWatermark(tx: Queryable, schema: string): Promise<Position> {
  const [row] = await tx.query<WatermarkRow>(
    sql`SELECT leaf, height, sequence FROM ${sql.id(schema, 'watermark')} WHERE id = 1 FOR UPDATE`,
  )
  const timeout = String(viewAdvanceMs)
  await tx.query(sql`SELECT set_config('statement_timeout', ${timeout}, true)`)
  return toPosition(row)
}

function toPosition(row: WatermarkRow | undefined): Position {
  const { leaf, height, sequence } = requirePresent(row, 'the watermark')
  return { leaf: Number(leaf), height: Number(height), sequence }
}

/** Counts the rows that readers see; groups that HAVING leaves out are stored beside them, as deleted. */
export async function countRows(
  database: Pick<Queryable, 'query'>,
  schema: string,
  table: string,
): Promise<number> {
  const [row] = await database.query<{ count: bigint }>(
    sql`SELECT count(*) AS count FROM ${sql.id(schema, table)} WHERE superseded_by IS NULL AND NOT deleted`,
  )
  return Number(row?.count ?? 0n)
}

/**
 * Counts the records of a collection that were live when only entries below a leaf counted, starting from those
 * that are live now, since few have changed.
 */
export async function countLiveBelow(
  database: Pick<Queryable, 'query'>,
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
export async function findNewestBelow(
  database: Pick<Queryable, 'query'>,
  schema: string,
  { table, below }: { table: string; below: number },
): Promise<WatermarkRow | undefined> {
  const [row] = await database.query<WatermarkRow>(sql`
    SELECT leaf, height, sequence FROM ${sql.id(schema, table)} WHERE leaf < ${below} ORDER BY leaf DESC LIMIT 1`)
  return row
}

/** The leaf of the entry that defines a view. */
export async function findViewLeaf(
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
export async function findBlockHeight(
  database: Queryable,
  schema: string,
  leaf: number,
): Promise<number | undefined> {
  const [row] = await database.query<{ height: bigint }>(sql`
    SELECT height FROM ${sql.id(schema, 'block')} WHERE first_leaf <= ${leaf} ORDER BY first_leaf DESC LIMIT 1`)
  return row && Number(row.height)
}
