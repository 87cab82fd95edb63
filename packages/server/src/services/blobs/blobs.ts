import { join } from 'node:path'
import { limits } from '@tollbase/contract/limits'
import type { Logger } from 'pino'
import { ConcurrencyLimit } from '../../base/concurrency-limit.ts'
import { Mutex } from '../../base/mutex.ts'
import type { World } from '../../base/world.ts'
import { BlobStore } from '../../blobs/blob-store.ts'
import type { Config } from '../../config/config.ts'
import { watchFreeSpace } from '../../database/embedded/free-space.ts'
import { getBlobsFolder, openShelf } from './open-shelf.ts'
import { ResumableUploads } from './resumable-uploads.ts'

/** The files of blobs, and the bounds on uploads. */
export type Blobs = {
  readonly store: BlobStore
  /** Bytes of the largest blob. */
  readonly bytesMax: number
  /** Uploads under way, by application. */
  readonly uploads: ConcurrencyLimit
  /** Removals of files at once, one at a time in the order of arrival. */
  readonly removals: Mutex
  /** Uploads in several requests, which outlive restarts. */
  readonly open: ResumableUploads
}

/**
 * Opens the files of blobs. It comes after the lease of the service's own chain, which no second process on the same
 * database holds.
 */
export async function openBlobs(
  config: Pick<Config, 'dataDir' | 'blobBytesMax' | 'blobStore'>,
  { world, log }: { readonly world: World; readonly log: Pick<Logger, 'warn'> },
): Promise<Blobs> {
  const { dataDir, blobBytesMax: bytesMax } = config
  const disk = watchFreeSpace({ folder: dataDir, bytesMin: limits.storageFreeBytesMin, world })
  const { needFor: needRoom, useRoom } = disk
  const shelf = await openShelf(config, {
    world,
    onSilent: (error) => {
      log.warn(
        { error: String(error) },
        'the store of blobs does not answer; blobs will answer 503 until it does',
      )
    },
  })
  const incoming = join(getBlobsFolder(config), 'incoming')
  return {
    open: new ResumableUploads({ root: join(dataDir, 'uploads'), world, needRoom, useRoom }),
    store: new BlobStore({ incoming, shelf, world, useRoom }),
    bytesMax,
    removals: new Mutex(),
    uploads: new ConcurrencyLimit({
      max: limits.uploadsMax,
      ofHolderMax: limits.uploadsOfApplicationMax,
      forNew: limits.uploadsMax / 4,
    }),
  }
}
