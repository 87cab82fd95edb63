import { type BlobPlace, formatPlace } from '../blobs/blob-shelf.ts'
import { BlockStore } from '../chain/block-store.ts'
import { parseBlock } from '../chain/parse-block.ts'
import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { findBlobHash, parseBlobRow } from '../model/blob.ts'
import type { Catalog } from '../model/catalog.ts'
import { loadCatalog } from '../projections/definitions/apply-definition.ts'
import { findResealingTable } from '../projections/reseal.ts'
import { listReplyBodies } from '../services/payments/claims/reply-store.ts'
import { decodeSoldFile, soldFileType } from '../services/payments/replies/sold-file.ts'

// The files that a copy of a database needs: those that its rows, its bought answers, and entries of its log that are no
// rows yet, name. Other files on the shelf wait for their removal, and may be the plaintext of what is encrypted by now.

/** A file that something names. */
export type NamedBlob = BlobPlace & {
  /** Bytes of the file; undefined where the row is sealed. */
  readonly size: number | undefined
  /** The collection, or what else names it. */
  readonly namedBy: string
  /** False where only an entry names it that is no row yet, so that the file may be none. */
  readonly isCertain: boolean
}

/** An application's schema, and its number, which names its folder of files. */
export type NamedPlace = { readonly schema: string; readonly folder: number }

/** Rows read at a time. */
const pageRows = 1_000
const pageBlocks = 64
const pageBytes = 8 * 1024 * 1024

/** Lists the files that an application needs, some of them several times. */
export async function* listNamedBlobs(
  database: Queryable,
  { schema, folder }: NamedPlace,
): AsyncGenerator<NamedBlob> {
  const catalog = await loadCatalog(database, schema)
  for (const { table, namedBy, isSealed } of listBlobTables(catalog))
    for await (const { sha256, body } of readBlobRows(database, { schema, table })) {
      const size = isSealed ? undefined : parseBlobRow(body).size
      yield { folder, namedBy, isCertain: true, sha256, size }
    }
  for await (const sha256 of listLoggedHashes(database, schema, catalog))
    yield { folder, sha256, size: undefined, namedBy: 'the log', isCertain: false }
}

type BlobTable = { readonly table: string; readonly namedBy: string; readonly isSealed: boolean }

/** Lists the tables whose rows name files. */
export function listBlobTables(catalog: Catalog): readonly BlobTable[] {
  const tables: BlobTable[] = []
  for (const { id, name, collection_type: type, table, encrypted } of catalog.byId.values()) {
    if (type !== 'blob') continue
    tables.push({ table, namedBy: name, isSealed: encrypted === true })
    // While the encryption changes, the files of the new form are named by rows of a second table.
    const second = findResealingTable(catalog, id)
    if (second !== undefined) tables.push({ table: second, namedBy: name, isSealed: true })
  }
  return tables
}

/** Lists the files that bought answers name, of all applications. */
export async function listSoldBlobs(database: Queryable): Promise<NamedBlob[]> {
  const bodies = await listReplyBodies(database, soldFileType)
  const named = { namedBy: 'a bought answer', isCertain: true }
  return bodies.map(decodeSoldFile).map((one) => ({ ...one, ...named }))
}

/** Puts the files that are named into one map by their paths, each once; a certain name, with its size, comes first. */
export function addNamedBlob(found: Map<string, NamedBlob>, blob: NamedBlob): void {
  const path = formatPlace(blob)
  const known = found.get(path)
  if (known?.isCertain === true && (known.size !== undefined || blob.size === undefined)) return
  if (known?.isCertain === true && !blob.isCertain) return
  found.set(path, blob)
}

/** Reads the rows of the blobs that a table of a collection has. */
export async function* readBlobRows(
  database: Queryable,
  { schema, table }: { readonly schema: string; readonly table: string },
): AsyncGenerator<{ readonly sha256: string; readonly body: string }> {
  for (let after = ''; ; ) {
    const rows = await database.query<{ key: string; body: string }>(sql`
      SELECT key, body FROM ${sql.id(schema, table)}
      WHERE superseded_by IS NULL AND NOT deleted AND key > ${after} ORDER BY key LIMIT ${pageRows}`)
    for (const { key, body } of rows) {
      const sha256 = findBlobHash(key)
      if (sha256 !== undefined) yield { sha256, body }
    }
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.key
  }
}

/** Lists the names of blobs in the entries that the tables do not have yet. */
async function* listLoggedHashes(
  database: Queryable,
  schema: string,
  catalog: Catalog,
): AsyncGenerator<string> {
  const store = new BlockStore(database, schema)
  const last = (await store.last())?.height ?? 0
  const { height, leaf } = await store.watermark()
  // The block of the watermark may be applied by half.
  let from = Math.max(height, 1)
  while (from <= last) {
    const rows = await store.blocks({
      ...{ from, to: last, blocksMax: pageBlocks, bytesMax: pageBytes },
    })
    if (rows.length === 0) return
    for (const row of rows)
      for (const entry of parseBlock(row).entries.slice(Math.max(leaf - row.firstLeaf, 0))) {
        const sha256 = findBlobHash(String(entry?.header.key))
        const known = catalog.byId.get(String(entry?.header.collection))
        if (sha256 !== undefined && (known?.collection_type ?? 'blob') === 'blob') yield sha256
      }
    from += rows.length
  }
}
