import { join } from 'node:path'
import { limits } from '@tollbase/contract/limits'
import { ConcurrencyLimit } from '../../base/concurrency-limit.ts'
import type { World } from '../../base/world.ts'
import { BlobStore } from '../../blobs/blob-store.ts'
import type { Config } from '../../config/config.ts'
import { watchFreeSpace } from '../../database/embedded/free-space.ts'
import { OpenUploads } from './open-uploads.ts'

/** The files of blobs, and the bounds on uploads. */
export type Blobs = {
  readonly store: BlobStore
  /** Bytes of the largest blob. */
  readonly bytesMax: number
  /** Uploads under way, by application. */
  readonly uploads: ConcurrencyLimit
  /** Uploads in several requests, which outlive restarts. */
  readonly open: OpenUploads
}

/**
 * Opens the files of blobs, in the data folder. It comes after the lease of the service's own chain, which no second
 * process on the same database holds.
 */
export function openBlobs(
  { dataDir, blobBytesMax }: Pick<Config, 'dataDir' | 'blobBytesMax'>,
  world: World,
): Blobs {
  const disk = watchFreeSpace({ folder: dataDir, bytesMin: limits.storageFreeBytesMin, world })
  const needRoom = disk.needFor
  return {
    open: new OpenUploads({ root: join(dataDir, 'uploads'), world, needRoom }),
    store: new BlobStore({ root: join(dataDir, 'blobs'), world, needRoom }),
    bytesMax: blobBytesMax,
    uploads: new ConcurrencyLimit({
      max: limits.uploadsMax,
      ofHolderMax: limits.uploadsOfApplicationMax,
    }),
  }
}
