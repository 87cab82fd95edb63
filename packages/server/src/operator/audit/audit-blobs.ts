import { type BlobShelf, findFile } from '../../blobs/blob-shelf.ts'
import type { Database } from '../../database/database.ts'
import { parseBlobRow } from '../../model/blob.ts'
import { DataProjection } from '../../projections/data-projection.ts'
import type { ChainPlace, Progress } from '../maintenance.ts'
import { readBlobRows } from '../named-blobs.ts'

type Difference = Readonly<Record<string, unknown>>

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
