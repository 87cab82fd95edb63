import type { Logger } from 'pino'
import { listPages } from '../../base/list-pages.ts'
import type { World } from '../../base/world.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'
import { hasUnnamedFiles, listNamedFiles } from './named-files.ts'

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
  let removed = 0
  const sweep = async (hashes: readonly string[]) => {
    const named = new Set(await listNamedFiles(database, tenant, hashes))
    for (const sha256 of hashes) {
      // Asked as late as possible: a change of encryption may have begun since.
      if (hasUnnamedFiles(tenant)) return
      const seen = { isNamed: named.has(sha256), graceMs: blobGraceMs }
      if (await blobs.store.sweep({ folder, sha256 }, seen)) removed += 1
    }
  }
  for await (const page of listPages(blobs.store.list(folder), batchSize))
    await sweep(page.map(({ sha256 }) => sha256))
  return removed
}
