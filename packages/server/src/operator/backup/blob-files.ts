import { mkdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { findStatus } from '../../base/files.ts'
import { type BlobPlace, type BlobShelf, formatPlace } from '../../blobs/blob-shelf.ts'
import { getBlobsFolder } from '../../services/blobs/open-shelf.ts'
import { copyFile, writeStream } from './copy-files.ts'

/** Copies a file of the shelf to this path, unless one of its size is there: files are named by their hashes. */
export async function copyFromShelf(
  shelf: BlobShelf,
  { size, ...place }: BlobPlace & { readonly size: number },
  to: string,
): Promise<void> {
  if ((await findStatus(to))?.size === size) return
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  await writeStream(shelf.read(place), to)
}

/** Copies a file to its place on the shelf, if its bytes are those that its name says; returns their hash. */
export async function copyToShelf(
  { shelf, dataDir }: { readonly shelf: BlobShelf; readonly dataDir: string },
  place: BlobPlace,
  from: string,
): Promise<string> {
  const onWay = join(getBlobsFolder({ dataDir }), 'incoming', basename(formatPlace(place)))
  const { sha256 } = await copyFile(from, onWay)
  if (sha256 === place.sha256) await shelf.put(onWay, place)
  else await rm(onWay)
  return sha256
}
