import { type BlobShelf, findFile } from '../../blobs/blob-shelf.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { findBlobHash, parseBlobRow } from '../../model/blob.ts'
import { DataProjection } from '../../projections/data-projection.ts'
import type { ChainPlace, Progress } from '../maintenance.ts'

type Difference = Readonly<Record<string, unknown>>

/** Rows read at a time. */
const pageRows = 1_000

/**
 * Checks that every blob that a row names has its file, and that the file has the bytes that its name promises. Files that
 * nobody names are no difference: the service collects them.
 */
export async function auditBlobs(
  database: Database,
  { places, shelf }: { readonly places: readonly ChainPlace[]; readonly shelf: BlobShelf },
  progress: Progress,
): Promise<Difference | undefined> {
  for (const { app, schema, number: folder } of places) {
    if (folder === undefined) continue
    const data = new DataProjection()
    await data.load(database, schema)
    let files = 0
    for (const { collection_type: type, table, name, encrypted } of data.catalog.byId.values()) {
      if (type !== 'blob') continue
      for await (const { sha256, body } of readBlobRows(database, { schema, table })) {
        // The size of an encrypted one is in its row, which is sealed; the hash is that of the sealed bytes.
        const size = encrypted === true ? undefined : parseBlobRow(body).size
        const file = await findFile(shelf, { folder, sha256 }, size)
        const found =
          file === undefined ? 'no file' : (await file.isIntact()) ? sha256 : 'other bytes'
        if (found !== sha256)
          return {
            chain: app,
            collection: name,
            what: `the file of the blob blob_${sha256}`,
            expected: sha256,
            found,
          }
        files += 1
        progress(`${app}: ${files} blobs`, 1)
      }
    }
  }
  return undefined
}

/** Reads the rows of the blobs that a collection has. */
async function* readBlobRows(
  database: Database,
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
