import { awaitWithin } from '../../base/await-within.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { expiredTable, listExpiries } from '../../projections/expiry.ts'
import { getSchemaName, type Tenant } from '../applications/tenants.ts'
import { readErased } from './erasure-store.ts'
import { eraseExpired, expireVersions } from './expire-versions.ts'
import type { ExpiryPorts } from './expiry-ports.ts'
import { findFirstKept } from './retention-cutoff.ts'
import { scrubMarked } from './scrub-files.ts'

/** The interval at which expired records are looked for. */
export const retentionSweepMs = 10 * 60_000

/** The time after which an application that is still being swept no longer keeps the next one waiting. */
const turnMs = 30_000
/** The time that sweeps get to end by themselves; the next start goes on with the others. */
const endMs = 5_000

/**
 * Sweeps at intervals; the returned function ends it. The first sweep begins at once, and only carries out what an earlier
 * process has left: until then the log has what nobody may read any more. A sweep waits for views, which may be slow, and some may belong
 * to other applications. So each application has a time limit; a sweep that takes longer goes on while the next
 * application is swept.
 */
export function startRetentionSweeps(ports: ExpiryPorts): () => Promise<void> {
  const { world, log, tenants } = ports
  let isEnding = false
  let running: Promise<void> | undefined
  const under = new Map<string, Promise<void>>()
  const sweep = async (application: ApplicationRecord, { find, work }: Sweep) => {
    try {
      const tenant = await find(ports, application)
      if (tenant !== undefined) await work(ports, tenant, () => isEnding)
    } catch (error) {
      // The next sweep goes on with it.
      log.warn({ error, app: application.app_id }, 'records that expired were not all deleted')
    }
  }
  const sweepAll = async (kind: Sweep) => {
    for (const application of tenants.system.applications.list()) {
      if (isEnding) return
      const { app_id: app } = application
      if (under.has(app)) continue
      const sweeping = sweep(application, kind).finally(() => under.delete(app))
      under.set(app, sweeping)
      await awaitWithin(sweeping, { world, ms: turnMs, otherwise: undefined })
    }
  }
  const scrubAll = async () => {
    try {
      await scrubMarked(ports, () => isEnding)
    } catch (error) {
      log.warn({ error }, 'nobody could say which files are to be written anew')
    }
  }
  const first = sweepAll({ find: findUnfinished, work: eraseExpired })
  const stop = world.every(retentionSweepMs, () => {
    running ??= first
      .then(() => sweepAll({ find: findSwept, work: sweepRetention }))
      .then(scrubAll)
      .finally(() => {
        running = undefined
      })
  })
  return async () => {
    stop()
    isEnding = true
    const ends = Promise.all([first, running, ...under.values()])
    await awaitWithin(ends, { world, ms: endMs, otherwise: undefined })
  }
}

/** The applications that are swept, and the work that is done in each. */
type Sweep = {
  readonly find: (ports: ExpiryPorts, application: ApplicationRecord) => Promise<Tenant | undefined>
  readonly work: (ports: ExpiryPorts, tenant: Tenant, isEnding: () => boolean) => Promise<void>
}

/** Opens the application if something has expired whose bytes the log may still have. */
async function findUnfinished(
  { database, tenants }: ExpiryPorts,
  { app_id: app, number }: ApplicationRecord,
): Promise<Tenant | undefined> {
  const schema = getSchemaName(number)
  const tables = await findTables(database, schema)
  if (tables?.definitions !== true) return undefined
  const isLeft = tables.expired && (await hasUnerased(database, schema))
  return isLeft || (await isBehindLog(database, schema)) ? tenants.loadEvenArchived(app) : undefined
}

/** Opens the application if it may have something to expire, or to finish; an archived one only to finish. */
async function findSwept(
  { database, tenants }: ExpiryPorts,
  { app_id: app, number, status }: ApplicationRecord,
): Promise<Tenant | undefined> {
  const open = tenants.listOpen().find(({ application }) => application.number === number)
  if (open !== undefined) return open
  const schema = getSchemaName(number)
  const tables = await findTables(database, schema)
  if (tables?.definitions !== true) return undefined
  // After a crash the tables may lack the entry that says what is to be erased, or that an encryption changes.
  if (await isBehindLog(database, schema)) return tenants.loadEvenArchived(app)
  if (status === 'archived') {
    const isLeft = tables.expired && (await hasUnerased(database, schema))
    return isLeft ? tenants.loadEvenArchived(app) : undefined
  }
  const kept = await database.query(sql`
    SELECT id FROM ${sql.id(schema, 'definition')}
    WHERE kind = 'collection' AND position('"retention":{' IN body) > 0 LIMIT 1`)
  return kept.length > 0 || tables.expired ? tenants.load(app) : undefined
}

async function findTables(database: Database, schema: string) {
  const [tables] = await database.query<{ definitions: boolean; expired: boolean }>(sql`
    SELECT to_regclass(${`${schema}.definition`}) IS NOT NULL AS definitions,
      to_regclass(${`${schema}.${expiredTable}`}) IS NOT NULL AS expired`)
  return tables
}

async function hasUnerased(database: Database, schema: string): Promise<boolean> {
  return (await listExpiries(database, schema, await readErased(database, schema))).length > 0
}

async function isBehindLog(database: Database, schema: string): Promise<boolean> {
  const behind = await database.query(sql`
    SELECT id FROM ${sql.id(schema, 'watermark')}
    WHERE height < (SELECT max(height) FROM ${sql.id(schema, 'block')}) LIMIT 1`)
  return behind.length > 0
}

/**
 * Lets expire what is older than its collection keeps, and carries out what was left of an earlier sweep. Nothing more
 * expires in an archived application.
 */
export async function sweepRetention(
  ports: ExpiryPorts,
  tenant: Tenant,
  isEnding: () => boolean = () => false,
): Promise<void> {
  const { world } = ports
  await eraseExpired(ports, tenant)
  for (const { id } of tenant.data.catalog.byId.values()) {
    // Time goes on, so the versions of one sweep have an end.
    const sweptAt = world.now()
    const getRetention = () => tenant.data.catalog.byId.get(id)?.retention
    const days = getRetention()?.days
    if (days === undefined) continue
    const isMeant = () => {
      const now = getRetention()
      if (isEnding() || tenant.application.status === 'archived') return false
      return now?.days === days && Date.parse(now.effective_at) <= sweptAt
    }
    if (!isMeant()) continue
    const before = await findFirstKept(ports.database, tenant, { days, now: sweptAt })
    const wanted = { collection: id, before, isMeant }
    for (let isMore = true; isMore && !isEnding(); ) {
      isMore = await expireVersions(ports, tenant, wanted)
      await eraseExpired(ports, tenant)
    }
  }
}
