import { requirePresent } from '../../base/assert.ts'
import { awaitWithin } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import { listPages } from '../../base/list-pages.ts'
import { sql } from '../../database/sql.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { makeBlobId } from '../../model/blob.ts'
import type { ResealingDefinition } from '../../model/definitions.ts'
import type { Collection } from '../../model/readable.ts'
import { listExistingKeys } from '../../projections/read-records.ts'
import { countVersions } from '../../projections/reseal.ts'
import type { ResealingProgress } from '../applications/progress.ts'
import { getSchemaName, type Tenant } from '../applications/tenants.ts'
import { eraseEarlierForms } from './erase-earlier-forms.ts'
import type { PreparedFiles } from './reseal-blobs.ts'
import { copyPage } from './reseal-versions.ts'
import type { ResealingPorts } from './resealing-ports.ts'

/** Time after which a change of encryption that failed goes on. */
export const resealingRetryMs = 10_000

/** Interval at which closed applications are looked through: another process may have begun a change there. */
export const resealingLookMs = 10 * 60_000

/** Files whose names are looked up at once. */
const filesAtOnce = 1_000

/** The time that steps under way get to end by themselves. */
const endMs = 5_000

/**
 * Carries out changes of the encryption of collections with records, beside the writes. All that is known of one is
 * in the log and the tables, so whoever opens the application next goes on with it.
 */
export class Resealings {
  readonly #ports: ResealingPorts
  readonly #running = new Map<string, Promise<void>>()
  /** By the id of the change. */
  readonly #prepared = new Map<string, PreparedFiles>()
  readonly #stops: readonly (() => void)[]
  /** Applications with a change under way that are not open yet. */
  #left: Promise<Set<string>> | undefined
  #isLookDue = true
  #isEnding = false

  constructor(ports: ResealingPorts) {
    this.#ports = ports
    this.#stops = [
      ports.world.every(resealingRetryMs, () => this.#sweep()),
      ports.world.every(resealingLookMs, () => {
        this.#isLookDue = true
      }),
    ]
    this.#sweep()
  }

  /** Goes on with the change of a collection until it has ended, or has failed for now. Never rejects. */
  run(tenant: Tenant, id: string): Promise<void> {
    const name = `${tenant.schema}.${id}`
    const known = this.#running.get(name)
    if (known !== undefined) return known
    const running = this.#run(tenant, id).finally(() => this.#running.delete(name))
    this.#running.set(name, running)
    return running
  }

  /** Removes the bytes of open uploads to collections whose encryption has changed. */
  removeUploads(tenant: Tenant): Promise<void> {
    return this.#ports.blobs.open.removeChanged(tenant)
  }

  /** Lets the steps under way end; the next start goes on. */
  async close(): Promise<void> {
    this.#isEnding = true
    for (const stop of this.#stops) stop()
    await this.#left?.catch(() => undefined)
    // A step that waits for views of others may take long; the next start goes on with it.
    const ends = Promise.all(this.#running.values())
    await awaitWithin(ends, { world: this.#ports.world, ms: endMs, otherwise: undefined })
  }

  async #run(tenant: Tenant, id: string): Promise<void> {
    const { log } = this.#ports
    try {
      const begun = tenant.data.catalog.resealings.get(id)
      const collection = tenant.data.catalog.byId.get(id)
      if (begun === undefined || collection === undefined) return
      const progress = await this.#measure(tenant, begun, collection)
      tenant.resealing.set(id, progress)
      const prepared = this.#getPrepared(begun)
      while (!this.#isEnding) {
        const now = tenant.data.catalog.resealings.get(id)
        if (now === undefined || now.state === 'completed') break
        if (now.state === 'copying')
          progress.done += await copyPage(this.#ports, tenant, { id, prepared, progress })
        else await eraseEarlierForms(this.#ports, tenant, now)
      }
      // Whatever has stayed is there for others, too.
      progress.fileBytes = 0
      if (!this.#isEnding) this.#prepared.delete(begun.id)
    } catch (error) {
      const problem = error instanceof Fault ? error.message : 'something went wrong on our side'
      const progress = tenant.resealing.get(id)
      if (progress !== undefined) tenant.resealing.set(id, { ...progress, problem })
      log.warn({ error, app: tenant.application.app_id }, 'a change of encryption waits')
    }
  }

  /** Files that were made before a step failed are used by the next try. */
  #getPrepared({ id }: ResealingDefinition): PreparedFiles {
    const prepared = this.#prepared.get(id) ?? new Map()
    this.#prepared.set(id, prepared)
    return prepared
  }

  async #measure(
    tenant: Tenant,
    begun: ResealingDefinition,
    collection: Collection,
  ): Promise<ResealingProgress> {
    const { database, blobs } = this.#ports
    const { schema, application } = tenant
    const count = (number: number) => countVersions(database, schema, `c_${number}`)
    const total = await count(collection.number)
    if (begun.state !== 'copying') return { total, done: 0, fileBytes: 0 }
    const done = await count(begun.number)
    const isOfBlobs = collection.collection_type === 'blob' && done > 0
    const fileBytes = isOfBlobs ? await measureCopies() : 0
    return { total, done, fileBytes }

    /** A process before this one has made some of the files. */
    async function measureCopies(): Promise<number> {
      let bytes = 0
      for await (const page of listPages(blobs.store.list(application.number), filesAtOnce)) {
        const keys = page.map(({ sha256 }) => makeBlobId(sha256))
        const table = `c_${begun.number}`
        const found = new Set(await listExistingKeys(database, { schema, table, keys }))
        for (const { sha256, size } of page) if (found.has(makeBlobId(sha256))) bytes += size
      }
      return bytes
    }
  }

  #sweep(): void {
    for (const tenant of this.#ports.tenants.listOpen()) this.#resume(tenant)
    this.#left = this.#openLeft(this.#left).catch((error) => {
      this.#ports.log.warn({ error }, 'changes of encryption were not looked for')
      this.#isLookDue = true
      return new Set()
    })
  }

  #resume(tenant: Tenant): void {
    for (const [id, { state }] of tenant.data.catalog.resealings)
      if (state !== 'completed') void this.run(tenant, id)
  }

  /** Opens the applications whose changes another process began. */
  async #openLeft(before: Promise<Set<string>> | undefined): Promise<Set<string>> {
    const known = await before
    const isDue = known === undefined || this.#isLookDue
    const left = isDue ? await this.#findLeft() : known
    if (isDue) this.#isLookDue = false
    for (const app of left) {
      if (this.#isEnding) break
      try {
        this.#resume(await this.#ports.tenants.loadEvenArchived(app))
        left.delete(app)
      } catch (error) {
        this.#ports.log.warn({ error, app }, 'a change of encryption waits')
      }
    }
    return left
  }

  /** Archived applications are among them: their sellers were told that the change follows. */
  async #findLeft(): Promise<Set<string>> {
    const left = new Set<string>()
    for (const application of this.#ports.tenants.system.applications.list())
      if (await this.#isUnderWay(application)) left.add(application.app_id)
    return left
  }

  async #isUnderWay({ number }: ApplicationRecord): Promise<boolean> {
    const { database } = this.#ports
    const schema = getSchemaName(number)
    const [table] = await database.query<{ found: boolean }>(
      sql`SELECT to_regclass(${`${schema}.definition`}) IS NOT NULL AS found`,
    )
    if (!requirePresent(table, 'the row').found) return false
    const found = await database.query(sql`
      SELECT id FROM ${sql.id(schema, 'definition')}
      WHERE kind = 'resealing' AND position('"state":"completed"' IN body) = 0 LIMIT 1`)
    return found.length > 0
  }
}
