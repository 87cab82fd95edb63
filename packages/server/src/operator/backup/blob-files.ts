import type { Stats } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { findStatus } from '../../base/files.ts'
import { type BlobPlace, type BlobShelf, formatPlace } from '../../blobs/blob-shelf.ts'
import { getBlobsFolder } from '../../services/blobs/open-shelf.ts'
import type { NamedBlob } from '../named-blobs.ts'
import { copyFile, hashFile, writeStream } from './copy-files.ts'

/**
 * Copies a file of the shelf to this path, and returns its bytes; undefined where the shelf has none of the bytes that
 * its name says. A copy that is there and has the right size stays, one that is in doubt only where its hash is right.
 */
export async function copyFromShelf(
  shelf: BlobShelf,
  blob: Pick<NamedBlob, 'folder' | 'sha256' | 'size'>,
  { to, isDoubted = () => true }: { to: string; isDoubted?: (copy: Stats) => boolean },
): Promise<number | undefined> {
  const copy = await findStatus(to)
  const isThere = copy?.isFile() === true
  const size = blob.size ?? (isThere ? await shelf.findSize(blob) : undefined)
  if (isThere && copy.size === size && !isDoubted(copy)) return copy.size
  if (isThere && (await hashFile(to)) === blob.sha256) return copy.size
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  const draft = `${to}.draft`
  try {
    const { bytes, sha256 } = await writeStream(shelf.read(blob), draft)
    if (sha256 === blob.sha256) {
      await rename(draft, to)
      return bytes
    }
  } catch (error) {
    await rm(draft, { force: true })
    if ((await shelf.findSize(blob)) !== undefined) throw error
  }
  await rm(draft, { force: true })
  return undefined
}

/** Copies a file to its place on the shelf; false where there is none, or its bytes are not those that its name says. */
export async function copyToShelf(
  { shelf, dataDir }: { readonly shelf: BlobShelf; readonly dataDir: string },
  { size, ...place }: BlobPlace & { readonly size: number | undefined },
  from: string,
): Promise<boolean> {
  const status = await findStatus(from)
  if (status?.isFile() !== true || status.size !== (size ?? status.size)) return false
  const onWay = join(getBlobsFolder({ dataDir }), 'incoming', basename(formatPlace(place)))
  const { sha256 } = await copyFile(from, onWay)
  if (sha256 === place.sha256) await shelf.put(onWay, place)
  else await rm(onWay)
  return sha256 === place.sha256
}
