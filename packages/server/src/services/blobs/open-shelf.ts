import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SetupError } from '../../base/setup-error.ts'
import type { World } from '../../base/world.ts'
import type { BlobShelf } from '../../blobs/blob-shelf.ts'
import { FolderShelf } from '../../blobs/folder-shelf.ts'
import { S3Shelf } from '../../blobs/s3-shelf.ts'
import type { Config } from '../../config/config.ts'

type Place = Pick<Config, 'dataDir' | 'blobStore'>

const manual = 'see "Blobs in a bucket" in docs/operating.md'

/** Makes the shelf that has the files of blobs: the bucket that is configured, or a folder of the data folder. */
export function makeShelf({ dataDir, blobStore }: Place, world: World): BlobShelf {
  return blobStore === undefined
    ? new FolderShelf(getBlobsFolder({ dataDir }))
    : new S3Shelf(blobStore, world)
}

/** Returns the folder of blobs; also with a bucket, those that are on their way are in it. */
export function getBlobsFolder({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'blobs')
}

/**
 * Opens the shelf for a service: with one that lacks the blobs of before, every one of them would be gone. A SetupError
 * says what to do, also where the store does not know the bucket or the credentials. One that does not answer may come.
 */
export async function openShelf(
  place: Place,
  { world, onSilent }: { readonly world: World; readonly onSilent: (error: unknown) => void },
): Promise<BlobShelf> {
  const shelf = makeShelf(place, world)
  // Where they are is written down where they are not in the folder.
  const note = join(place.dataDir, 'blob-store')
  const noted = existsSync(note) ? readFileSync(note, 'utf8').trim() : undefined
  const folder = getBlobsFolder(place)
  const name = place.blobStore === undefined ? folder : shelf.name
  if (noted !== undefined && noted !== name)
    throw new SetupError(
      `blob_store: the blobs of this data folder are in ${noted}, and the configuration says ${name}: copy them there, then remove ${note}; ${manual}`,
    )
  if (!(shelf instanceof S3Shelf)) return shelf
  if (noted === undefined) {
    for await (const _ of new FolderShelf(folder).list())
      throw new SetupError(
        `blob_store: ${folder} has blobs: copy it into the bucket, then move it away; ${manual}`,
      )
  }
  const status = await shelf.probe().catch(onSilent)
  const problem = status === undefined ? undefined : findProblem(status)
  if (problem !== undefined) throw new SetupError(`blob_store: ${shelf.name} ${problem}`)
  if (noted === undefined) writeFileSync(note, `${name}\n`, { mode: 0o600, flush: true })
  return shelf
}

function findProblem(status: number): string | undefined {
  if (status >= 200 && status < 300) return undefined
  if (status === 404) return 'is not there: make the bucket first'
  if (status === 401 || status === 403)
    return 'is refused to AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
  if (status >= 500) return undefined
  return `answers with status ${status}: are endpoint, region and path_style right?`
}
