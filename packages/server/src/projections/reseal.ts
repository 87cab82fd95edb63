import { decodeEntry, type Entry } from '@tollbase/verify/entry'
import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { Catalog } from '../model/catalog.ts'

// Where the encryption of a collection with records changes, an entry `reseal` holds each of its versions as it will
// be, with its old place in the log. They fill a second table beside the collection's own, which goes on as before;
// once all are in it, the collection's definition names it, and the first one is dropped. A replay from a log without
// the old entries makes the same second table, as it needs nothing of the first.

/** A version of a record in its other form. */
export type ResealedVersion = {
  /** Its place in the log, which stays. */
  readonly leaf: number
  readonly height: number
  readonly sequence: number
  readonly deleted: boolean
  /** The leaf of what replaced it, as far as was known. */
  readonly supersededBy: number | null
  readonly key: string
  readonly body: string
  /** Leaves of the log that hold it in earlier forms. */
  readonly earlier: readonly number[]
  /** The name by which the earlier id of a blob is found: a token where the id tells something. */
  readonly former?: string
}

/** The entries that hold versions in other forms than their own entries do, by the leaf of the version. */
export const resealedTable = 'resealed'

/** Made with the first change of encryption: most applications never need it. */
export function buildResealedTable(schema: string): SqlStatement[] {
  const table = sql.id(schema, resealedTable)
  return [
    sql`CREATE TABLE IF NOT EXISTS ${table} (
      leaf int8 NOT NULL, entry int8 NOT NULL, collection text NOT NULL, former text,
      CONSTRAINT resealed_pkey PRIMARY KEY (leaf, entry))`,
    sql`CREATE INDEX IF NOT EXISTS resealed_former ON ${table} (former) WHERE former IS NOT NULL`,
  ]
}

/** Adds the names that blobs had to tables from before blobs could change. */
export function buildMissingFormerColumns(): SqlStatement[] {
  return [
    sql`DO $$ DECLARE one name; BEGIN
      FOR one IN SELECT nspname FROM pg_catalog.pg_namespace AS namespace
        JOIN pg_catalog.pg_class AS class ON class.relnamespace = namespace.oid
        WHERE relname = 'resealed' AND relkind = 'r' AND nspname LIKE 'app\\_%'
      LOOP
        EXECUTE format('ALTER TABLE %I.resealed ADD COLUMN IF NOT EXISTS former text', one);
        EXECUTE format('CREATE INDEX IF NOT EXISTS resealed_former ON %I.resealed (former) WHERE former IS NOT NULL', one);
      END LOOP; END $$`,
  ]
}

/** The earlier forms of a version that `isSealed` now are to leave the log. */
export function makeResealEntry(
  collection: string,
  version: ResealedVersion,
  isSealed: boolean,
): Entry {
  const { leaf, height, sequence, deleted, supersededBy, key, body, earlier, former } = version
  return {
    header: {
      ...{ type: 'reseal', collection, leaf, height, sequence, key },
      ...(deleted && { deleted }),
      ...(supersededBy !== null && { superseded_by: supersededBy }),
      ...(former !== undefined && { former }),
      ...(isSealed && { sealed: true, erases: [leaf, ...earlier] }),
    },
    body,
  }
}

const headerStart = Buffer.from('{"type":"reseal"')

/** Lists the leaves whose bytes may be gone because of an entry `reseal`, given by its bytes. */
export function listResealedBy(bytes: Uint8Array): readonly number[] {
  if (!headerStart.equals(bytes.subarray(0, headerStart.length))) return []
  const { header } = decodeEntry(bytes)
  return header.type === 'reseal' && Array.isArray(header.erases) ? header.erases.map(Number) : []
}

/** The table that the versions of a collection get into while its encryption changes. */
export function findResealingTable({ resealings }: Catalog, id: string): string | undefined {
  const begun = resealings.get(id)
  return begun?.state === 'copying' ? `c_${begun.number}` : undefined
}

type Change = {
  readonly schema: string
  readonly catalog: Catalog
  readonly entries: readonly AppliedEntry[]
}

/** Adds versions to the second table; those that were live when they were read may be replaced by later ones of it. */
export async function applyReseals(
  tx: Queryable,
  { schema, catalog, entries }: Change,
): Promise<void> {
  const ids = new Set(entries.map(({ header }) => String(header.collection)))
  for (const id of ids) {
    const versions = entries.filter(({ header }) => header.collection === id)
    const name = findResealingTable(catalog, id)
    if (name !== undefined) await addVersions(tx, { schema, id, name, versions })
  }
}

async function addVersions(
  tx: Queryable,
  change: {
    readonly schema: string
    readonly id: string
    readonly name: string
    readonly versions: readonly AppliedEntry[]
  },
): Promise<void> {
  const { schema, versions } = change
  const table = sql.id(schema, change.name)
  const leaves = versions.map(({ header }) => Number(header.leaf))
  const keys = versions.map(({ header }) => String(header.key))
  await tx.execute(sql`
    INSERT INTO ${table} (leaf, height, sequence, key, deleted, superseded_by, data, body)
    SELECT leaf, height, sequence, key, deleted, superseded_by, body::jsonb, body
    FROM unnest(${leaves}::int8[], ${versions.map(({ header }) => Number(header.height))}::int8[],
      ${versions.map(({ header }) => Number(header.sequence))}::int4[], ${keys}::text[],
      ${versions.map(({ header }) => header.deleted === true)}::bool[],
      ${versions.map(({ header }) => header.superseded_by ?? null)}::int8[],
      ${versions.map(({ body }) => body)}::text[])
      AS fresh (leaf, height, sequence, key, deleted, superseded_by, body)`)
  await tx.execute(sql`
    UPDATE ${table} AS old SET superseded_by = next.leaf
    FROM (
      SELECT live.leaf AS replaced, min(fresh.leaf) AS leaf
      FROM unnest(${leaves}::int8[], ${keys}::text[]) AS fresh (leaf, key)
      JOIN ${table} AS live ON live.key = fresh.key AND live.leaf < fresh.leaf
      WHERE live.superseded_by IS NULL AND live.key = ANY(${keys}::text[])
      GROUP BY live.leaf) AS next
    WHERE old.leaf = next.replaced`)
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, resealedTable)} (leaf, entry, collection, former)
    SELECT leaf, entry, ${change.id}::text, former
    FROM unnest(${leaves}::int8[], ${versions.map(({ leafIndex }) => leafIndex)}::int8[],
      ${versions.map(({ header }) => header.former ?? null)}::text[]) AS fresh (leaf, entry, former)`)
}

type Row = {
  readonly leaf: bigint
  readonly height: bigint
  readonly sequence: number
  readonly deleted: boolean
  readonly superseded_by: bigint | null
  readonly key: string
  readonly body: string
  readonly earlier: readonly bigint[]
  readonly found: bigint
}

/**
 * The versions of a collection that its second table lacks, oldest first: at most so many, and no more than some
 * bytes unless the first alone has more. Those that have expired stay behind. `all` says that there are no others.
 */
export async function readUncopied(
  database: Queryable,
  schema: string,
  wanted: {
    readonly from: string
    readonly to: string
    readonly rows: number
    readonly bytes: number
    /** The table of expired versions, where there is one. */
    readonly expired: string | undefined
  },
): Promise<{ readonly versions: ResealedVersion[]; readonly all: boolean }> {
  const { rows, bytes, expired } = wanted
  const isKept =
    expired === undefined
      ? sql`true`
      : sql`NOT EXISTS (SELECT 1 FROM ${sql.id(schema, expired)} AS expired WHERE expired.leaf = version.leaf)`
  const found = await database.query<Row>(sql`
    SELECT leaf, height, sequence, deleted, superseded_by, key, body, found, ARRAY(
      SELECT entry FROM ${sql.id(schema, resealedTable)} AS resealed
      WHERE resealed.leaf = sized.leaf ORDER BY entry) AS earlier
    FROM (
      SELECT leaf, height, sequence, deleted, superseded_by, key, body, count(*) OVER () AS found,
        sum(octet_length(body)) OVER (ORDER BY leaf) - octet_length(body) AS before
      FROM (
        SELECT leaf, height, sequence, deleted, superseded_by, key, body FROM ${sql.id(schema, wanted.from)} AS version
        WHERE leaf > (SELECT coalesce(max(leaf), -1) FROM ${sql.id(schema, wanted.to)}) AND ${isKept}
        ORDER BY leaf LIMIT ${rows}
      ) AS page) AS sized
    WHERE before < ${bytes} ORDER BY leaf`)
  const count = Number(found[0]?.found ?? 0)
  const versions = found.map((row) => ({
    leaf: Number(row.leaf),
    height: Number(row.height),
    sequence: row.sequence,
    deleted: row.deleted,
    supersededBy: row.superseded_by === null ? null : Number(row.superseded_by),
    key: row.key,
    body: row.body,
    earlier: row.earlier.map(Number),
  }))
  return { versions, all: count < rows && found.length === count }
}

/** Counts the versions in a table. */
export async function countVersions(
  database: Queryable,
  schema: string,
  table: string,
): Promise<number> {
  const [row] = await database.query<{ count: bigint }>(
    sql`SELECT count(*) AS count FROM ${sql.id(schema, table)}`,
  )
  return Number(row?.count ?? 0)
}

/** The leaf of the newest entry of a collection's resealing. */
export async function readResealingLeaf(
  database: Queryable,
  schema: string,
  id: string,
): Promise<number> {
  const [row] = await database.query<{ leaf: bigint }>(
    sql`SELECT leaf FROM ${sql.id(schema, 'definition')} WHERE kind = 'resealing' AND id = ${id}`,
  )
  if (row === undefined) throw new Error(`the collection ${id} has no resealing`)
  return Number(row.leaf)
}

type Span = { readonly after: number; readonly max: number }

/** Leaves behind one of a collection's versions that were stored before the change ended. */
export async function listVersionLeaves(
  database: Queryable,
  schema: string,
  { table, before, after, max }: Span & { readonly table: string; readonly before: number },
): Promise<number[]> {
  const rows = await database.query<{ leaf: bigint }>(sql`
    SELECT leaf FROM ${sql.id(schema, table)}
    WHERE leaf > ${after} AND leaf < ${before} ORDER BY leaf LIMIT ${max}`)
  return rows.map(({ leaf }) => Number(leaf))
}

/** The entries that hold a collection's versions in forms from before a leaf. */
export async function listEarlierForms(
  database: Queryable,
  schema: string,
  { id, before, after, max }: Span & { readonly id: string; readonly before: number },
): Promise<number[]> {
  const rows = await database.query<{ entry: bigint }>(sql`
    SELECT entry FROM ${sql.id(schema, resealedTable)}
    WHERE collection = ${id} AND entry > ${after} AND entry < ${before} ORDER BY entry LIMIT ${max}`)
  return rows.map(({ entry }) => Number(entry))
}

/** Forgets the entries that hold a collection's versions in forms from before a leaf: they are erased. */
export async function deleteEarlierForms(
  tx: Queryable,
  schema: string,
  { id, before }: { readonly id: string; readonly before: number },
): Promise<void> {
  await tx.execute(sql`
    DELETE FROM ${sql.id(schema, resealedTable)} WHERE collection = ${id} AND entry < ${before}`)
}

/** Returns whether the encryption of any filled collection has ever changed. */
export async function hasResealedTable(database: Queryable, schema: string): Promise<boolean> {
  const [row] = await database.query<{ found: boolean }>(
    sql`SELECT to_regclass(${`${schema}.${resealedTable}`}) IS NOT NULL AS found`,
  )
  return row?.found === true
}

/** The entries that hold these versions in other forms; the table must be there. */
export async function listForms(
  database: Queryable,
  schema: string,
  leaves: readonly number[],
): Promise<number[]> {
  const rows = await database.query<{ entry: bigint }>(sql`
    SELECT entry FROM ${sql.id(schema, resealedTable)}
    WHERE leaf = ANY(${[...leaves]}::int8[]) ORDER BY entry`)
  return rows.map(({ entry }) => Number(entry))
}
