import type { Logger } from 'pino'
import { listPages } from '../../base/list-pages.ts'
import type { World } from '../../base/world.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { makeBlobId } from '../../model/blob.ts'
import { listBlobTables } from '../../projections/blob-tables.ts'
import { listLiveKeys } from '../../projections/read-records.ts'
import { getSchemaName, type Tenant } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'
import { hasUnnamedFiles, listNamedFiles } from './named-files.ts'

/** Time for which no row and no bought answer has named a blob's file, after which it is deleted. */
export const blobGraceMs = 6 * 3600 * 1000

export const collectEveryMs = 10 * 60_000
const batchSize = 1_000

export type CollectorPorts = Uses<'database' | 'tenants' | 'blobs'> & {
  readonly world: World
  readonly log: Logger
}

/** Collects the files that nobody names from time to time; the returned function ends it. */
export function startBlobCollector(ports: CollectorPorts): () => Promise<void> {
  const { world, log, blobs, tenants } = ports
  let isEnding = false
  /**
   * Applications that were closed, with all files named, when they were looked at, and how often they had been opened
   * until then: nothing changes in them before they are opened again.
   */
  const whole = new Map<number, number>()
  const collect = async (application: ApplicationRecord) => {
    const { app_id: app, number } = application
    const open = tenants.listOpen().find((one) => one.application.number === number)
    if (open === undefined) {
      const openings = tenants.countOpenings(number)
      if (whole.get(number) === openings) return
      whole.set(number, openings)
      if (!(await mayHaveUnnamed(ports, number))) return
    }
    whole.delete(number)
    await collectBlobs(ports, open ?? (await tenants.loadEvenArchived(app)))
  }
  const collectAll = async () => {
    await removeUploads(ports).catch((error: unknown) => {
      log.warn({ error }, 'uploads that cannot go on could not be removed')
    })
    for (const application of tenants.system.applications.list()) {
      if (isEnding) break
      await collect(application).catch((error: unknown) => {
        whole.delete(application.number)
        log.warn({ error, app: application.app_id }, 'blobs could not be collected')
      })
    }
    await blobs.store.keepNotes().catch((error: unknown) => {
      log.warn({ error }, 'nobody could write down which blobs are named no more')
    })
  }
  let running = removeUploads(ports).catch((error: unknown) => {
    log.warn({ error }, 'uploads that cannot go on could not be removed')
  })
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
 * Removes open uploads that are past their time, and those that cannot go on because the encryption of their collections
 * has changed: the process that changed it may have died before it removed them.
 */
async function removeUploads({ blobs, tenants, log }: CollectorPorts): Promise<void> {
  await blobs.open.sweep()
  const numbers = blobs.open.listApplications()
  for (const { app_id: app, number } of tenants.system.applications.list()) {
    if (!numbers.has(number)) continue
    const remove = async () => {
      const tenant = await tenants.loadEvenArchived(app)
      await tenant.chain.whenApplied(tenant.chain.head().height)
      await blobs.open.removeChanged(tenant)
    }
    // An application that cannot be opened keeps only its own.
    await remove().catch((error: unknown) => {
      log.warn({ error, app }, 'uploads that cannot go on could not be removed')
    })
  }
}

/**
 * Says whether a closed application may have files that no row names. Its tables may lack the newest entries, so it is
 * opened before any file is removed.
 */
async function mayHaveUnnamed(
  { database, blobs }: CollectorPorts,
  number: number,
): Promise<boolean> {
  const schema = getSchemaName(number)
  const tables = await listBlobTables(database, schema)
  if (tables === undefined) return false
  for await (const page of listPages(blobs.store.list(number), batchSize)) {
    const keys = page.map(({ sha256 }) => makeBlobId(sha256))
    const live = new Set<string>()
    for (const table of tables)
      for (const key of await listLiveKeys(database, { schema, table, keys })) live.add(key)
    if (keys.some((key) => !live.has(key))) return true
  }
  return false
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
