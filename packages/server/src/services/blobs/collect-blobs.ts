import type { Logger } from 'pino'
import type { World } from '../../base/world.ts'
import { makeBlobId } from '../../model/blob.ts'
import { listLiveKeys } from '../../projections/read-records.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'
import { listReplyBodies } from '../payments/claims/reply-store.ts'
import { decodeSoldFile, soldFileType } from '../payments/replies/sold-file.ts'

/** Time for which no row and no bought answer has named a blob's file, after which it is deleted. */
export const blobGraceMs = 6 * 3600 * 1000

const collectEveryMs = 10 * 60_000
const batchSize = 1_000

export type CollectorPorts = Uses<'database' | 'tenants' | 'blobs'> & {
  readonly world: World
  readonly log: Logger
}

/** Collects the files that nobody names from time to time; the returned function ends it. */
export function startBlobCollector(ports: CollectorPorts): () => Promise<void> {
  const { world, log } = ports
  let running = Promise.resolve()
  let isEnding = false
  const collectAll = async () => {
    await ports.blobs.open.sweep().catch((error: unknown) => {
      log.warn({ error }, 'uploads past their time could not be removed')
    })
    for (const tenant of ports.tenants.listOpen()) {
      if (isEnding) return
      await collectBlobs(ports, tenant).catch((error: unknown) => {
        log.warn({ error, app: tenant.application.app_id }, 'blobs could not be collected')
      })
    }
  }
  const stop = world.every(collectEveryMs, () => {
    running = running.then(collectAll)
  })
  return async () => {
    stop()
    isEnding = true
    await running
  }
}

/**
 * Removes the files of an application that no row of a collection of blobs and no bought answer has named for the time
 * of grace: the rows of uploads and answers that are on their way come within it.
 */
export async function collectBlobs(
  { database, blobs }: Pick<CollectorPorts, 'database' | 'blobs'>,
  tenant: Tenant,
): Promise<number> {
  const folder = tenant.application.number
  await tenant.chain.whenApplied(tenant.chain.head().height)
  const sold = (await listReplyBodies(database, soldFileType)).map(decodeSoldFile)
  const bought = new Set(sold.filter((one) => one.folder === folder).map(({ sha256 }) => sha256))
  let removed = 0
  const sweep = async (hashes: readonly string[]) => {
    const named = new Set([...bought, ...(await listNamed({ database }, tenant, hashes))])
    for (const sha256 of hashes) {
      const seen = { isNamed: named.has(sha256), graceMs: blobGraceMs }
      if (await blobs.store.sweep({ folder, sha256 }, seen)) removed += 1
    }
  }
  let batch: string[] = []
  for await (const { sha256 } of blobs.store.list(folder)) {
    batch.push(sha256)
    if (batch.length < batchSize) continue
    await sweep(batch)
    batch = []
  }
  await sweep(batch)
  return removed
}

/** Those of the hashes that a row names. */
async function listNamed(
  { database }: Uses<'database'>,
  { data, schema }: Tenant,
  hashes: readonly string[],
): Promise<readonly string[]> {
  const keys = new Map(hashes.map((sha256) => [makeBlobId(sha256), sha256]))
  const found: string[] = []
  for (const { collection_type: type, table } of data.catalog.byId.values()) {
    if (type !== 'blob') continue
    const live = await listLiveKeys(database, { schema, table, keys: [...keys.keys()] })
    for (const key of live) found.push(keys.get(key) ?? '')
  }
  return found
}
