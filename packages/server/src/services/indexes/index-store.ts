import type { Database, Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'

/** An index as it is in the database. */
export type StoredIndex = {
  readonly name: string
  /** Finished, so that reads may use it. */
  readonly isValid: boolean
  /** A connection is at work on it. */
  readonly isUnderWay: boolean
}

/** Reads the defined indexes in an application's schema, and the leftovers of interrupted builds and rebuilds. */
export function readStoredIndexes(database: Queryable, schema: string): Promise<StoredIndex[]> {
  return database.query<StoredIndex>(sql`
    SELECT class.relname::text AS name, index.indisvalid AS "isValid", building.pid IS NOT NULL AS "isUnderWay"
    FROM pg_catalog.pg_index AS index
    JOIN pg_catalog.pg_class AS class ON class.oid = index.indexrelid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    LEFT JOIN pg_catalog.pg_stat_progress_create_index AS building ON building.datname = current_database()
      AND (building.index_relid = index.indexrelid
        OR building.relid = index.indrelid AND building.command LIKE 'REINDEX%' AND class.relname ~ '_cc(new|old)[0-9]*$')
    WHERE namespace.nspname = ${schema} AND class.relname ~ '^i_[0-9]+(_cc(new|old)[0-9]*)?$'`)
}

/** Reads the names of the value statistics in an application's schema; each is that of its index. */
export async function readStoredStatistics(
  database: Queryable,
  schema: string,
): Promise<ReadonlySet<string>> {
  const rows = await database.query<{ name: string }>(sql`
    SELECT statistics.stxname::text AS name FROM pg_catalog.pg_statistic_ext AS statistics
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = statistics.stxnamespace
    WHERE namespace.nspname = ${schema} AND statistics.stxname ~ '^i_[0-9]+$'`)
  return new Set(rows.map(({ name }) => name))
}

export async function dropStatistics(
  database: Queryable,
  schema: string,
  name: string,
): Promise<void> {
  await database.execute(sql`DROP STATISTICS IF EXISTS ${sql.id(schema, name)}`)
}

export async function analyzeTable(
  session: Queryable,
  schema: string,
  table: string,
): Promise<void> {
  await session.execute(sql`ANALYZE ${sql.id(schema, table)}`)
}

/** Counts the rows of a table up to a maximum. */
export async function countRowsUpTo(
  database: Queryable,
  schema: string,
  { table, most }: { table: string; most: number },
): Promise<number> {
  const [row] = await database.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM (SELECT 1 FROM ${sql.id(schema, table)} LIMIT ${most}) AS few`)
  return Number(row?.count ?? 0n)
}

export type BuildProgress = {
  readonly command: string
  readonly phase: string
  readonly blocksTotal: bigint
  readonly blocksDone: bigint
  readonly tuplesTotal: bigint
  readonly tuplesDone: bigint
}

/**
 * Reads the progress of the work on an index; undefined where there is none now. A rebuild makes its new index
 * under another name.
 */
export async function readBuildProgress(
  database: Queryable,
  of: { schema: string; name: string },
): Promise<BuildProgress | undefined> {
  const [row] = await database.query<BuildProgress>(sql`
    SELECT building.command, building.phase, building.blocks_total AS "blocksTotal", building.blocks_done AS "blocksDone",
      building.tuples_total AS "tuplesTotal", building.tuples_done AS "tuplesDone"
    FROM pg_catalog.pg_stat_progress_create_index AS building
    JOIN pg_catalog.pg_class AS class ON class.oid = building.index_relid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE building.datname = current_database() AND namespace.nspname = ${of.schema}
      AND (class.relname = ${of.name} OR class.relname ~ ${`^${of.name}_ccnew[0-9]*$`})`)
  return row
}

/** The use of an index since the database began to count, and its size. */
export type IndexUse = {
  readonly name: string
  readonly scans: bigint
  /** Entries of the index that scans went through, and live rows that they gave. */
  readonly tuplesRead: bigint
  readonly tuplesFetched: bigint
  readonly bytes: bigint
  /** Milliseconds since 1970; null where it never was, or before PostgreSQL 16. */
  readonly lastUsedMs: bigint | null
}

/**
 * Reads the use of indexes by their names in the database: of all defined indexes of an application, or of those on
 * one table.
 */
export async function readIndexUse(
  database: Database,
  of: { schema: string; table?: string },
): Promise<ReadonlyMap<string, IndexUse>> {
  const lastUsed =
    database.major >= 16
      ? sql`(extract(epoch FROM used.last_idx_scan) * 1000)::int8`
      : sql`NULL::int8`
  const rows = await database.query<IndexUse>(sql`
    SELECT used.indexrelname::text AS name, used.idx_scan AS scans, used.idx_tup_read AS "tuplesRead",
      used.idx_tup_fetch AS "tuplesFetched", pg_catalog.pg_relation_size(used.indexrelid) AS bytes,
      ${lastUsed} AS "lastUsedMs"
    FROM pg_catalog.pg_stat_user_indexes AS used
    WHERE used.schemaname = ${of.schema} AND used.indexrelname ~ '^i_[0-9]+$'
      AND (${of.table ?? null}::text IS NULL OR used.relname = ${of.table ?? null}::text)`)
  return new Map(rows.map((row) => [row.name, row]))
}

/** Does nothing where the index does not exist any more. Must run outside of a transaction. */
export async function dropConcurrently(
  session: Queryable,
  schema: string,
  name: string,
): Promise<void> {
  await session.execute(sql`DROP INDEX CONCURRENTLY IF EXISTS ${sql.id(schema, name)}`)
}

export async function reindexConcurrently(
  session: Queryable,
  schema: string,
  name: string,
): Promise<void> {
  await session.execute(sql`REINDEX INDEX CONCURRENTLY ${sql.id(schema, name)}`)
}
