import { decodeEntry, type Entry } from '@tollbase/verify/entry'
import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { Catalog } from '../model/catalog.ts'
import { getPlaintextTable, isQueryable } from '../model/encrypted-collections.ts'
import { lockPlaintext } from './plaintext-table.ts'
import { findResealingTable, resealedTable } from './reseal.ts'
import { hasOwnSource } from './view-readers.ts'
import { distrust } from './view-state.ts'

// Two entries remove versions of records. `expire` names them: from then on they count as replaced, so live views treat
// them like deletions. Once the views have followed, `erase` deletes their rows. After that the log's bytes may be
// erased. A replay without those bytes makes the same tables, because it finds no rows to mark or delete.

/** The versions that an entry `expire` names: their leaves, and a name of each one's record that tells nothing. */
export type ExpiredVersions = {
  readonly leaves: readonly number[]
  readonly names: readonly string[]
  /** Leaves of entries that hold some of them in another form, after a change of encryption. */
  readonly forms?: readonly number[]
}

export const expiredTable = 'expired'

/** Made with the first entry: most applications never need it. */
function buildExpiredTable(schema: string): SqlStatement[] {
  const table = sql.id(schema, expiredTable)
  return [
    sql`CREATE TABLE IF NOT EXISTS ${table} (
      leaf int8 NOT NULL, collection text NOT NULL, name text NOT NULL, expired_by int8 NOT NULL,
      CONSTRAINT expired_pkey PRIMARY KEY (leaf))`,
    sql`CREATE INDEX IF NOT EXISTS expired_name ON ${table} (name)`,
    sql`CREATE INDEX IF NOT EXISTS expired_expired_by ON ${table} (expired_by)`,
  ]
}

export function makeExpireEntry(collection: string, versions: ExpiredVersions): Entry {
  return { header: { type: 'expire', collection }, body: JSON.stringify(versions) }
}

/** `expired` is the leaf of the entry that names the versions. */
export function makeEraseEntry({ collection, leaf: expired }: Expiry): Entry {
  return { header: { type: 'erase', collection, expired }, body: '' }
}

const expireStart = Buffer.from('{"type":"expire"')

/** Lists the leaves whose bytes may be gone because of an entry `expire`, given by its bytes. */
export function listExpiredBy(bytes: Uint8Array): readonly number[] {
  if (!expireStart.equals(bytes.subarray(0, expireStart.length))) return []
  const { header, body } = decodeEntry(bytes)
  if (header.type !== 'expire') return []
  const { leaves, forms = [] } = parseVersions(body)
  return [...leaves, ...forms]
}

function parseVersions(body: string): ExpiredVersions {
  return JSON.parse(body)
}

type Change = {
  readonly schema: string
  readonly catalog: Catalog
  readonly entry: AppliedEntry
}

/** Marks the versions as replaced, and takes those that were live out of the counts. */
export async function applyExpire(
  tx: Queryable,
  { schema, catalog, entry }: Change,
): Promise<void> {
  const { leaves, names, forms = [] } = parseVersions(entry.body)
  const id = String(entry.header.collection)
  for (const statement of buildExpiredTable(schema)) await tx.execute(statement)
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, expiredTable)} (leaf, collection, name, expired_by)
    SELECT leaf, ${id}::text, name, ${entry.leafIndex}::int8
    FROM unnest(${[...leaves, ...forms]}::int8[], ${[...names, ...forms.map(() => '')]}::text[]) AS version (leaf, name)
    ON CONFLICT (leaf) DO NOTHING`)
  if (forms.length > 0)
    await tx.execute(sql`
      DELETE FROM ${sql.id(schema, resealedTable)} WHERE entry = ANY(${[...forms]}::int8[])`)
  const collection = catalog.byId.get(id)
  if (collection === undefined) return
  const begun = findResealingTable(catalog, id)
  if (begun !== undefined)
    await tx.execute(sql`
      UPDATE ${sql.id(schema, begun)} SET superseded_by = ${entry.leafIndex}
      WHERE leaf = ANY(${[...leaves]}::int8[]) AND superseded_by IS NULL`)
  await tx.execute(sql`
    WITH marked AS (
      UPDATE ${sql.id(schema, collection.table)} SET superseded_by = ${entry.leafIndex}
      WHERE leaf = ANY(${[...leaves]}::int8[]) AND superseded_by IS NULL
      RETURNING deleted, octet_length(body) AS bytes),
    gone AS (
      SELECT count(*) AS documents, coalesce(sum(bytes), 0)::int8 AS bytes FROM marked WHERE NOT deleted)
    INSERT INTO ${sql.id(schema, 'collection_stats')} AS stats (collection, documents, bytes, versions)
    SELECT ${id}::text, -gone.documents, -gone.bytes, 0 FROM gone
    ON CONFLICT (collection) DO UPDATE SET
      documents = stats.documents + excluded.documents, bytes = stats.bytes + excluded.bytes`)
}

/**
 * Deletes the rows of expired versions. Views that stand before the entry that named them, and so may still have
 * rows of them, are made anew.
 */
export async function applyErase(tx: Queryable, { schema, catalog, entry }: Change): Promise<void> {
  const collection = catalog.byId.get(String(entry.header.collection))
  if (collection === undefined) return
  const expired = Number(entry.header.expired)
  const isOpened = isQueryable(collection)
  if (isOpened) await lockPlaintext(tx, { schema, collection })
  const opened = isOpened ? [getPlaintextTable(collection)] : []
  const begun = findResealingTable(catalog, collection.id)
  for (const table of [...opened, ...(begun === undefined ? [] : [begun])])
    await tx.execute(sql`
      DELETE FROM ${sql.id(schema, table)} AS version USING ${sql.id(schema, expiredTable)} AS expired
      WHERE expired.expired_by = ${expired} AND version.leaf = expired.leaf`)
  await tx.execute(sql`
    WITH deleted AS (
      DELETE FROM ${sql.id(schema, collection.table)} AS version
      USING ${sql.id(schema, expiredTable)} AS expired
      WHERE expired.expired_by = ${expired} AND version.leaf = expired.leaf RETURNING version.leaf)
    UPDATE ${sql.id(schema, 'collection_stats')} AS stats
    SET versions = stats.versions - (SELECT count(*) FROM deleted) WHERE collection = ${collection.id}`)
  const views = [...catalog.views.values()].filter(({ view }) => hasOwnSource(view, collection.id))
  await distrust(tx, schema, { views: views.map(({ view }) => view.id), uncounted: expired })
}

/** Returns whether any version of the application has ever expired. */
export async function hasExpiredTable(database: Queryable, schema: string): Promise<boolean> {
  const [row] = await database.query<{ found: boolean }>(
    sql`SELECT to_regclass(${`${schema}.${expiredTable}`}) IS NOT NULL AS found`,
  )
  return row?.found === true
}

export type ExpiredVersion = {
  readonly height: bigint
  readonly sequence: number
  /** Hex. */
  readonly leaf_hash: string
}

/**
 * The expired versions of records with these names, oldest first, with what the log keeps of them; the table must be
 * there.
 */
export function readExpired(
  database: Queryable,
  schema: string,
  names: readonly string[],
): Promise<ExpiredVersion[]> {
  return database.query(sql`
    SELECT block.height, (expired.leaf - block.first_leaf)::int4 AS sequence,
      encode(substring(block.leaf_hashes FROM (32 * (expired.leaf - block.first_leaf) + 1)::int4 FOR 32), 'hex') AS leaf_hash
    FROM ${sql.id(schema, expiredTable)} AS expired
    CROSS JOIN LATERAL (
      SELECT height, first_leaf, leaf_hashes FROM ${sql.id(schema, 'block')}
      WHERE first_leaf <= expired.leaf ORDER BY first_leaf DESC LIMIT 1) AS block
    WHERE expired.name = ANY(${names}::text[]) ORDER BY expired.leaf`)
}

/** An entry `expire`, by its leaf. */
export type Expiry = { readonly leaf: number; readonly collection: string }

/** The entries `expire` behind a leaf, in their order; the table must be there. */
export async function listExpiries(
  database: Queryable,
  schema: string,
  after: number,
): Promise<Expiry[]> {
  const rows = await database.query<{ leaf: bigint; collection: string }>(sql`
    SELECT expired_by AS leaf, collection FROM ${sql.id(schema, expiredTable)}
    WHERE expired_by > ${after} GROUP BY expired_by, collection ORDER BY expired_by`)
  return rows.map(({ leaf, collection }) => ({ leaf: Number(leaf), collection }))
}

/** The leaves that an entry `expire` names. */
export async function listExpiredLeaves(
  database: Queryable,
  schema: string,
  { leaf }: Expiry,
): Promise<number[]> {
  const rows = await database.query<{ leaf: bigint }>(
    sql`SELECT leaf FROM ${sql.id(schema, expiredTable)} WHERE expired_by = ${leaf} ORDER BY leaf`,
  )
  return rows.map((row) => Number(row.leaf))
}

/** Leaves of the log: those from one on and before another. */
type Leaves = { readonly from: number; readonly before: number }

/** Lists the leaves of a part of the log that an entry `expire` names; the table must be there. */
export async function listExpiredAmong(
  database: Queryable,
  schema: string,
  leaves: Leaves,
): Promise<number[]> {
  const rows = await database.query<{ leaf: bigint }>(
    sql`SELECT leaf FROM ${sql.id(schema, expiredTable)} WHERE ${printIsAmong(leaves)}`,
  )
  return rows.map(({ leaf }) => Number(leaf))
}

/** Counts the same: none leaves the table, so as many are the same ones. */
export async function countExpiredAmong(
  database: Queryable,
  schema: string,
  leaves: Leaves,
): Promise<number> {
  const [row] = await database.query<{ count: bigint }>(
    sql`SELECT count(*) AS count FROM ${sql.id(schema, expiredTable)} WHERE ${printIsAmong(leaves)}`,
  )
  return Number(row?.count ?? 0)
}

function printIsAmong({ from, before }: Leaves): SqlStatement {
  return sql`leaf >= ${from} AND leaf < ${before}`
}

/** A part of a collection's versions: those from a leaf on and before another. */
type Span = { readonly table: string; readonly from: number; readonly before: number }

/** A version of a record, with the record's name in the table. */
export type ListedVersion = { readonly leaf: number; readonly key: string }

/** The oldest versions of a span. */
export async function listOldest(
  database: Queryable,
  schema: string,
  { table, from, before, max }: Span & { readonly max: number },
): Promise<ListedVersion[]> {
  const rows = await database.query<{ leaf: bigint; key: string }>(sql`
    SELECT leaf, key FROM ${sql.id(schema, table)}
    WHERE leaf >= ${from} AND leaf < ${before} ORDER BY leaf LIMIT ${max}`)
  return rows.map(({ leaf, key }) => ({ leaf: Number(leaf), key }))
}

/** Bytes of a collection's versions: of all, and of those of the span. */
export async function readVersionBytes(
  database: Pick<Queryable, 'query'>,
  schema: string,
  { table, from, before }: Span,
): Promise<{ readonly all: number; readonly span: number }> {
  const [row] = await database.query<{ all_bytes: bigint; span_bytes: bigint }>(sql`
    SELECT coalesce(sum(octet_length(body)), 0)::int8 AS all_bytes,
      coalesce(sum(octet_length(body)) FILTER (WHERE leaf >= ${from} AND leaf < ${before}), 0)::int8 AS span_bytes
    FROM ${sql.id(schema, table)}`)
  return { all: Number(row?.all_bytes ?? 0), span: Number(row?.span_bytes ?? 0) }
}
