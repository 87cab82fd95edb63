import { awaitTurn } from '../base/await-turn.ts'
import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { Catalog } from '../model/catalog.ts'
import type { CollectionDefinition } from '../model/definitions.ts'
import type { Collection } from '../model/readable.ts'
import { type FieldColumn, printFieldColumn, printStoredValue } from '../query/field-column.ts'
import { parseFieldPath } from '../query/field-path.ts'
import { printKeyExpression, printValueExpression } from '../query/index-key.ts'
import { type FieldDeclarations, listFieldColumns } from './field-columns.ts'

/** Cannot occur in JSON text or in a key (RFC 7464 uses it to separate JSON texts), so it separates both. */
const separator = '\u001e'

/**
 * A collection's table: every version of every record. `superseded_by` is the leaf of the version that
 * replaced this one; live rows have none. `data` answers conditions, `body` is the record as it was sent. Declared
 * fields have columns, which stand before all that is long, so that reading them touches little of a row.
 * By the last index a cursor finds what was live at its height and is not any more.
 */
export function buildCollectionTables(
  schema: string,
  collection: Pick<CollectionDefinition, 'number'> & FieldDeclarations,
): SqlStatement[] {
  const name = `c_${collection.number}`
  const fields = listFieldColumns(collection).map((column) => `${printFieldColumn(column)}, `)
  return [
    sql`CREATE TABLE ${sql.id(schema, name)} (
      leaf int8 NOT NULL, height int8 NOT NULL, sequence int4 NOT NULL, key text NOT NULL,
      deleted bool NOT NULL, superseded_by int8, ${sql.compiled(fields.join(''), [])}data jsonb NOT NULL, body text NOT NULL,
      CONSTRAINT ${sql.id(`${name}_pkey`)} PRIMARY KEY (leaf))`,
    sql`CREATE INDEX ${sql.id(`${name}_key`)} ON ${sql.id(schema, name)} (key) WHERE superseded_by IS NULL`,
    sql`CREATE INDEX ${sql.id(`${name}_superseded`)} ON ${sql.id(schema, name)} (superseded_by) WHERE superseded_by IS NOT NULL`,
  ]
}

/** All statements were sent, so what is sent next finds them done; `done` settles when they are. */
export type Sent = { readonly done: Promise<unknown> }

/**
 * Adds new versions and marks the ones they replace. Entries of a collection that was deleted since are passed over.
 * Other requests have their turns while the statements of long records are made.
 */
export async function sendRecords(
  tx: Queryable,
  run: {
    schema: string
    catalog: Catalog
    entries: readonly AppliedEntry[]
    /** The columns of each table that are filled here. */
    written?: ReadonlyMap<string, readonly FieldColumn[]>
  },
): Promise<Sent> {
  const byCollection = new Map<string, AppliedEntry[]>()
  for (const entry of run.entries) {
    const id = String(entry.header.collection)
    const list = byCollection.get(id)
    if (list === undefined) byCollection.set(id, [entry])
    else list.push(entry)
  }
  const sent: Promise<unknown>[] = []
  let chars = 0
  for (const [id, entries] of byCollection) {
    const collection = run.catalog.byId.get(id)
    if (collection === undefined) continue
    const written = run.written?.get(collection.table) ?? []
    const batch = { schema: run.schema, collection, entries, written }
    for (const part of splitBatch(batch)) {
      if (chars > charsAtOnce) await awaitTurn()
      chars = (chars > charsAtOnce ? 0 : chars) + countChars(part.entries)
      sent.push(sendPart(tx, part))
    }
    if (hasUnique(collection)) sent.push(supersedeByFields(tx, batch))
    // Whoever awaits `done` is told; an earlier refusal must not end the process.
    for (const one of sent) one.catch(() => undefined)
  }
  return { done: Promise.all(sent) }
}

/** Entries of one statement, and characters of their records; a single one may have more. */
const entriesPerStatement = 256
const charsPerStatement = 128 * 1024
/** Characters of the records whose statements are made without a pause. */
const charsAtOnce = 128 * 1024

type RecordBatch = {
  schema: string
  collection: Collection
  entries: readonly AppliedEntry[]
  written: readonly FieldColumn[]
}

function hasUnique({ indexes }: Collection): boolean {
  return indexes.some((index) => index.unique)
}

function sendPart(tx: Queryable, part: RecordBatch): Promise<unknown> {
  if (!hasUnique(part.collection))
    return tx.execute(buildReplaceVersions(part, listNextLeaves(part.entries)))
  const next = part.entries.map(() => null)
  return tx.execute(sql`WITH ${buildFreshRows(part, next)} ${buildInsertFresh(part)}`)
}

/** The database is at work on the first part while the others are made and sent. */
function* splitBatch(batch: RecordBatch): Generator<RecordBatch, void> {
  let part: AppliedEntry[] = []
  let chars = 0
  for (const entry of batch.entries) {
    const isFull =
      part.length === entriesPerStatement || chars + entry.body.length > charsPerStatement
    if (isFull && part.length > 0) {
      yield { ...batch, entries: part }
      part = []
      chars = 0
    }
    part.push(entry)
    chars += entry.body.length
  }
  if (part.length > 0) yield { ...batch, entries: part }
}

function countChars(entries: readonly AppliedEntry[]): number {
  return entries.reduce((sum, { body }) => sum + body.length, 0)
}

function getTable(batch: RecordBatch): SqlStatement {
  return sql.id(batch.schema, batch.collection.table)
}

/** A common table `fresh` of the batch's versions. */
function buildFreshRows({ entries }: RecordBatch, next: readonly (number | null)[]): SqlStatement {
  return sql`fresh AS MATERIALIZED (
    SELECT leaf, height, sequence, deleted, superseded_by, key, body FROM ROWS FROM (
      unnest(${formatArray(entries.map((entry) => entry.leafIndex))}::int8[]),
      unnest(${formatArray(entries.map((entry) => entry.height))}::int8[]),
      unnest(${formatArray(entries.map((entry) => entry.sequence))}::int4[]),
      unnest(${formatArray(entries.map((entry) => entry.header.deleted === true))}::bool[]),
      unnest(${formatArray(next)}::int8[]),
      string_to_table(${entries.map(getKey).join(separator)}, ${separator}),
      string_to_table(${entries.map((entry) => entry.body).join(separator)}, ${separator})
    ) AS fresh (leaf, height, sequence, deleted, superseded_by, key, body))`
}

function buildInsertFresh(batch: RecordBatch): SqlStatement {
  if (batch.written.length > 0) return buildInsertWithColumns(batch)
  return sql`
    INSERT INTO ${getTable(batch)} (leaf, height, sequence, key, deleted, superseded_by, data, body)
    SELECT leaf, height, sequence, key, deleted, superseded_by, body::jsonb, body FROM fresh`
}

/** Each record is parsed once for all of its columns, behind the OFFSET. */
function buildInsertWithColumns(batch: RecordBatch): SqlStatement {
  const names = batch.written.map(({ name }) => sql`, ${sql.id(name)}`)
  const values = batch.written.map((column) => `, ${printStoredValue(column, 'data')}`)
  return sql`
    INSERT INTO ${getTable(batch)} (leaf, height, sequence, key, deleted, superseded_by, data, body${sql.join(names, '')})
    SELECT leaf, height, sequence, key, deleted, superseded_by, data, body${sql.compiled(values.join(''), [])}
    FROM (SELECT fresh.*, body::jsonb AS data FROM fresh OFFSET 0) AS parsed`
}

function getKey(entry: AppliedEntry): string {
  return String(entry.header.key)
}

/**
 * Formats an array as pg does, but without quoting and escaping each element, which numbers and booleans do not
 * need.
 */
function formatArray(list: readonly (number | boolean | null)[]): string {
  return `{${list.map((each) => each ?? 'NULL').join(',')}}`
}

/**
 * Adds the batch's versions, marks the live ones of older blocks that they replace, and counts both, in one statement
 * whose parts do not see what the others do.
 */
function buildReplaceVersions(batch: RecordBatch, next: readonly (number | null)[]): SqlStatement {
  const keys = [...new Set(batch.entries.map(getKey))].join(separator)
  // The second condition on the key is redundant. It is there for the plan, which is made while the table is small and
  // kept while it grows: with the condition the plan uses the index and does not scan the whole table.
  return sql`
    WITH ${buildFreshRows(batch, next)},
    stored AS (${buildInsertFresh(batch)}),
    first AS MATERIALIZED (SELECT key, min(leaf) AS leaf FROM fresh GROUP BY key),
    replaced AS (
      UPDATE ${getTable(batch)} AS old SET superseded_by = first.leaf FROM first
      WHERE old.key = first.key AND old.superseded_by IS NULL
        AND old.key = ANY (string_to_array(${keys}, ${separator}))
      RETURNING old.deleted, octet_length(old.body) AS bytes)
    ${buildCountBatch(batch, next)}`
}

/** For each entry the leaf of the next one in this batch with the same key, or null. */
function listNextLeaves(entries: readonly AppliedEntry[]): (number | null)[] {
  const later = new Map<string, number>()
  return entries
    .toReversed()
    .map((entry) => {
      const key = getKey(entry)
      const next = later.get(key) ?? null
      later.set(key, entry.leafIndex)
      return next
    })
    .toReversed()
}

/** The documents and bytes of a common table `replaced`. */
const gone = sql`SELECT count(*) AS documents, coalesce(sum(bytes), 0)::int8 AS bytes FROM replaced WHERE NOT deleted`

/**
 * A unique field versions like the primary key: a record is replaced by the first later one that has its
 * key or the value of one of its unique fields. Being the earliest over all of them, the outcome does not
 * depend on how entries were gathered into batches.
 */
function supersedeByFields(tx: Queryable, batch: RecordBatch): Promise<void> {
  const first = batch.entries[0]?.leafIndex ?? 0
  const unique = batch.collection.indexes.filter((index) => index.unique)
  const same = [sql`old.key = fresh.key`, ...unique.map((index) => buildSameValues(index.fields))]
  const next = batch.entries.map(() => null)
  return supersede(tx, { table: getTable(batch), first, same }, buildCountBatch(batch, next))
}

/** Supersedes records for a field that becomes unique: the newest of each value stays live. */
export function supersedeAll(
  tx: Queryable,
  change: {
    schema: string
    collection: Pick<Collection, 'id' | 'table'>
    fields: readonly string[]
  },
): Promise<void> {
  const { schema, collection } = change
  const table = sql.id(schema, collection.table)
  const count = sql`
    UPDATE ${sql.id(schema, 'collection_stats')} AS stats
    SET documents = stats.documents - gone.documents, bytes = stats.bytes - gone.bytes
    FROM (${gone}) AS gone WHERE collection = ${collection.id}`
  return supersede(tx, { table, first: 0, same: [buildSameValues(change.fields)] }, count)
}

/** Marks live rows with the first row from `first` on that is the same by one of the conditions; `count` uses `gone`. */
async function supersede(
  tx: Queryable,
  change: { table: SqlStatement; first: number; same: readonly SqlStatement[] },
  count: SqlStatement,
): Promise<void> {
  const { table, first } = change
  const candidates = change.same.map(
    (same) => sql`SELECT old.leaf, fresh.leaf AS by
      FROM ${table} AS fresh JOIN ${table} AS old ON ${same}
      WHERE fresh.leaf >= ${first} AND old.leaf < fresh.leaf
        AND old.superseded_by IS NULL AND fresh.superseded_by IS NULL`,
  )
  // A plan made while the table was small, and kept, would go through the whole table once it is large.
  await Promise.all([
    tx.query(sql`SELECT set_config('plan_cache_mode', 'force_custom_plan', true)`),
    tx.execute(sql`
      WITH candidate AS MATERIALIZED (${sql.join(candidates, ' UNION ALL ')}),
      earliest AS MATERIALIZED (SELECT leaf, min(by) AS by FROM candidate GROUP BY leaf),
      replaced AS (
        UPDATE ${table} AS old SET superseded_by = earliest.by FROM earliest WHERE old.leaf = earliest.leaf
        RETURNING old.deleted, octet_length(old.body) AS bytes)
      ${count}`),
    tx.query(sql`SELECT set_config('plan_cache_mode', 'auto', true)`),
  ])
}

/** Keys of those live records that have a value of an index's fields in common with one of the texts. */
export async function listSameValueKeys(
  database: Queryable,
  find: { schema: string; table: string; fields: readonly string[]; bodies: readonly string[] },
): Promise<string[]> {
  const rows = await database.query<{ key: string }>(sql`
    WITH fresh AS MATERIALIZED (
      SELECT body::jsonb AS data FROM string_to_table(${find.bodies.join(separator)}, ${separator}) AS body)
    SELECT old.key FROM fresh JOIN ${sql.id(find.schema, find.table)} AS old ON ${buildSameValues(find.fields)}
    WHERE old.superseded_by IS NULL LIMIT 1`)
  return rows.map((row) => row.key)
}

function buildSameValues(fields: readonly string[]): SqlStatement {
  return sql.join(fields.map(buildSameValue), ' AND ')
}

/** Equal and neither null nor missing; the key finds it by index, the value decides. */
function buildSameValue(field: string): SqlStatement {
  const path = parseFieldPath(field, '')
  const compileSide = (record: string, expression: typeof printKeyExpression) =>
    sql.compiled(`(${expression(path, record)})`, [])
  return sql`${compileSide('old.data', printKeyExpression)} = ${compileSide('fresh.data', printKeyExpression)}
    AND ${compileSide('old.data', printValueExpression)} = ${compileSide('fresh.data', printValueExpression)}`
}

/** Counts what a batch added, less what it replaced: the common table `replaced`. */
function buildCountBatch(
  { schema, collection, entries }: RecordBatch,
  next: readonly (number | null)[],
): SqlStatement {
  const added = entries.filter(
    ({ header }, at) => (next[at] ?? null) === null && header.deleted !== true,
  )
  const bytes = added.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0)
  return sql`
    INSERT INTO ${sql.id(schema, 'collection_stats')} AS stats (collection, documents, bytes, versions)
    SELECT ${collection.id}::text, ${added.length}::int8 - gone.documents, ${bytes}::int8 - gone.bytes, ${entries.length}::int8
    FROM (${gone}) AS gone
    ON CONFLICT (collection) DO UPDATE SET
      documents = stats.documents + excluded.documents,
      bytes = stats.bytes + excluded.bytes,
      versions = stats.versions + excluded.versions`
}
