import type { AppliedEntry } from '../../chain/applier.ts'
import type { Queryable } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import { keyExpression, valueExpression } from '../../query/index-key.ts'
import type { Catalog } from './catalog.ts'
import type { CollectionDefinition, CollectionState } from './definitions.ts'

/** Cannot occur in JSON text or in a key (RFC 7464 uses it to separate JSON texts), so it separates both. */
const separator = '\u001e'

/**
 * A collection's table: every version of every record. `superseded_by` is the leaf of the version that
 * replaced this one; live rows have none. `data` answers conditions, `body` is the record as it was sent.
 */
export function collectionTables(schema: string, collection: CollectionDefinition): SqlStatement[] {
  const name = `c_${collection.number}`
  return [
    sql`CREATE TABLE ${sql.id(schema, name)} (
      leaf int8 NOT NULL, height int8 NOT NULL, sequence int4 NOT NULL, key text NOT NULL,
      deleted bool NOT NULL, superseded_by int8, data jsonb NOT NULL, body text NOT NULL,
      CONSTRAINT ${sql.id(`${name}_pkey`)} PRIMARY KEY (leaf))`,
    sql`CREATE INDEX ${sql.id(`${name}_key`)} ON ${sql.id(schema, name)} (key) WHERE superseded_by IS NULL`,
  ]
}

/** Adds new versions and marks the ones they replace. Entries of a collection that was deleted since are passed over. */
export async function projectRecords(
  tx: Queryable,
  run: { schema: string; catalog: Catalog; entries: readonly AppliedEntry[] },
): Promise<void> {
  const byCollection = new Map<string, AppliedEntry[]>()
  for (const entry of run.entries) {
    const id = String(entry.header.collection)
    const list = byCollection.get(id)
    if (list === undefined) byCollection.set(id, [entry])
    else list.push(entry)
  }
  for (const [id, entries] of byCollection) {
    const collection = run.catalog.byId.get(id)
    if (collection === undefined) continue
    await projectCollection(tx, { schema: run.schema, collection, entries })
  }
}

type Batch = { schema: string; collection: CollectionState; entries: readonly AppliedEntry[] }

async function projectCollection(tx: Queryable, batch: Batch): Promise<void> {
  const unique = batch.collection.indexes.filter((index) => index.unique)
  const keys = batch.entries.map((entry) => String(entry.header.key))
  if (unique.length > 0) {
    await insertVersions(tx, { batch, keys, next: batch.entries.map(() => null) })
    const replaced = await supersedeByFields(tx, {
      batch,
      fields: unique.map((index) => index.fields),
    })
    return countChanges(tx, { batch, next: [], replaced })
  }
  const next = nextOfSameKey(keys, batch.entries)
  const replaced = await supersedeByKey(tx, { batch, keys })
  await insertVersions(tx, { batch, keys, next })
  return countChanges(tx, { batch, next, replaced })
}

async function insertVersions(
  tx: Queryable,
  insert: { batch: Batch; keys: readonly string[]; next: readonly (number | null)[] },
): Promise<void> {
  const { entries } = insert.batch
  await tx.execute(sql`
    INSERT INTO ${tableOf(insert.batch)} (leaf, height, sequence, key, deleted, superseded_by, data, body)
    SELECT leaf, height, sequence, key, deleted, superseded_by, body::jsonb, body
    FROM ROWS FROM (
      unnest(${entries.map((entry) => entry.leafIndex)}::int8[]),
      unnest(${entries.map((entry) => entry.height)}::int8[]),
      unnest(${entries.map((entry) => entry.sequence)}::int4[]),
      unnest(${entries.map((entry) => entry.header.deleted === true)}::bool[]),
      unnest(${insert.next}::int8[]),
      string_to_table(${insert.keys.join(separator)}, ${separator}),
      string_to_table(${entries.map((entry) => entry.body).join(separator)}, ${separator})
    ) AS fresh (leaf, height, sequence, deleted, superseded_by, key, body)`)
}

function tableOf(batch: Batch): SqlStatement {
  return sql.id(batch.schema, batch.collection.table)
}

type Replaced = { documents: bigint; bytes: bigint }

/** Marks live versions of older blocks that this batch replaces. */
async function supersedeByKey(
  tx: Queryable,
  change: { batch: Batch; keys: readonly string[] },
): Promise<Replaced> {
  const firstLeaf = new Map<string, number>()
  for (const [at, key] of change.keys.entries()) {
    if (!firstLeaf.has(key)) firstLeaf.set(key, change.batch.entries[at]?.leafIndex ?? 0)
  }
  const list = [...firstLeaf.keys()].join(separator)
  // The second condition on the key says nothing new, but with it the plan, made when the table was small and kept
  // while it grows, goes by the index and not through the whole table.
  const [row] = await tx.query<Replaced>(sql`
    WITH fresh AS MATERIALIZED (
      SELECT key, leaf FROM ROWS FROM (
        string_to_table(${list}, ${separator}),
        unnest(${[...firstLeaf.values()]}::int8[])) AS fresh (key, leaf)),
    replaced AS (
      UPDATE ${tableOf(change.batch)} AS old SET superseded_by = fresh.leaf FROM fresh
      WHERE old.key = fresh.key AND old.superseded_by IS NULL
        AND old.key = ANY (string_to_array(${list}, ${separator}))
      RETURNING old.deleted, octet_length(old.body) AS bytes)
    SELECT count(*) AS documents, coalesce(sum(bytes), 0)::int8 AS bytes FROM replaced WHERE NOT deleted`)
  return row ?? { documents: 0n, bytes: 0n }
}

/** For each entry the leaf of the next one in this batch with the same key, or null. */
function nextOfSameKey(
  keys: readonly string[],
  entries: readonly AppliedEntry[],
): (number | null)[] {
  const later = new Map<string, number>()
  const next: (number | null)[] = new Array(keys.length).fill(null)
  for (let at = keys.length - 1; at >= 0; at--) {
    const key = keys[at] ?? ''
    next[at] = later.get(key) ?? null
    later.set(key, entries[at]?.leafIndex ?? 0)
  }
  return next
}

/**
 * A unique field versions like the primary key: a record is replaced by the first later one that has its
 * key or the value of one of its unique fields. Being the earliest over all of them, the outcome does not
 * depend on how entries were gathered into batches.
 */
async function supersedeByFields(
  tx: Queryable,
  change: { batch: Batch; fields: readonly (readonly string[])[] },
): Promise<Replaced> {
  const first = change.batch.entries[0]?.leafIndex ?? 0
  const same = [sql`old.key = fresh.key`, ...change.fields.map(sameValues)]
  return supersede(tx, { table: tableOf(change.batch), first, same })
}

/** What a field that becomes unique means for the records that are there: the newest of each value stays live. */
export async function supersedeAll(
  tx: Queryable,
  change: { schema: string; collection: CollectionState; fields: readonly string[] },
): Promise<void> {
  const { schema, collection } = change
  const table = sql.id(schema, collection.table)
  const replaced = await supersede(tx, { table, first: 0, same: [sameValues(change.fields)] })
  await tx.execute(sql`
    UPDATE ${sql.id(schema, 'collection_stats')}
    SET documents = documents - ${replaced.documents}, bytes = bytes - ${replaced.bytes}
    WHERE collection = ${collection.id}`)
}

/** Marks live rows with the first row from `first` on that is the same by one of the conditions. */
async function supersede(
  tx: Queryable,
  change: { table: SqlStatement; first: number; same: readonly SqlStatement[] },
): Promise<Replaced> {
  const { table, first } = change
  const candidates = change.same.map(
    (same) => sql`SELECT old.leaf, fresh.leaf AS by
      FROM ${table} AS fresh JOIN ${table} AS old ON ${same}
      WHERE fresh.leaf >= ${first} AND old.leaf < fresh.leaf
        AND old.superseded_by IS NULL AND fresh.superseded_by IS NULL`,
  )
  const [row] = await tx.query<Replaced>(sql`
    WITH candidate AS MATERIALIZED (${sql.join(candidates, ' UNION ALL ')}),
    earliest AS MATERIALIZED (SELECT leaf, min(by) AS by FROM candidate GROUP BY leaf),
    replaced AS (
      UPDATE ${table} AS old SET superseded_by = earliest.by FROM earliest WHERE old.leaf = earliest.leaf
      RETURNING old.deleted, octet_length(old.body) AS bytes)
    SELECT count(*) AS documents, coalesce(sum(bytes), 0)::int8 AS bytes FROM replaced WHERE NOT deleted`)
  return row ?? { documents: 0n, bytes: 0n }
}

/** Keys of those live records that have a value of an index's fields in common with one of the texts. */
export async function keysOfSameValues(
  database: Queryable,
  find: { schema: string; table: string; fields: readonly string[]; bodies: readonly string[] },
): Promise<string[]> {
  const rows = await database.query<{ key: string }>(sql`
    WITH fresh AS MATERIALIZED (
      SELECT body::jsonb AS data FROM string_to_table(${find.bodies.join(separator)}, ${separator}) AS body)
    SELECT old.key FROM fresh JOIN ${sql.id(find.schema, find.table)} AS old ON ${sameValues(find.fields)}
    WHERE old.superseded_by IS NULL LIMIT 1`)
  return rows.map((row) => row.key)
}

function sameValues(fields: readonly string[]): SqlStatement {
  return sql.join(fields.map(sameValue), ' AND ')
}

/** Equal and neither null nor missing; the key finds it by index, the value decides. */
function sameValue(field: string): SqlStatement {
  const path = parseFieldPath(field, '')
  const of = (record: string, expression: typeof keyExpression) =>
    sql.compiled(`(${expression(path, record)})`, [])
  return sql`${of('old.data', keyExpression)} = ${of('fresh.data', keyExpression)}
    AND ${of('old.data', valueExpression)} = ${of('fresh.data', valueExpression)}`
}

async function countChanges(
  tx: Queryable,
  change: { batch: Batch; next: readonly (number | null)[]; replaced: Replaced },
): Promise<void> {
  let documents = -change.replaced.documents
  let bytes = -change.replaced.bytes
  for (const [at, entry] of change.batch.entries.entries()) {
    if ((change.next[at] ?? null) !== null || entry.header.deleted === true) continue
    documents += 1n
    bytes += BigInt(Buffer.byteLength(entry.body))
  }
  const versions = change.batch.entries.length
  const table = sql.id(change.batch.schema, 'collection_stats')
  await tx.execute(sql`
    INSERT INTO ${table} AS stats (collection, documents, bytes, versions)
    VALUES (${change.batch.collection.id}, ${documents}, ${bytes}, ${versions})
    ON CONFLICT (collection) DO UPDATE SET
      documents = stats.documents + excluded.documents,
      bytes = stats.bytes + excluded.bytes,
      versions = stats.versions + excluded.versions`)
}
