import type { Logger } from 'pino'
import { assert } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { Mutex } from '../../base/mutex.ts'
import type { World } from '../../base/world.ts'
import { TablesMovedError } from '../../chain/applier-loop.ts'
import type { Chain } from '../../chain/chain.ts'
import { type ChainMemory, makeChainMemory } from '../../chain/chain-memory.ts'
import type { Contents } from '../../chain/chain-options.ts'
import type { Signer } from '../../chain/signing.ts'
import type { Database } from '../../database/database.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { refuseUnsealed } from '../../model/encrypted-collections.ts'
import { isData, isOwnWork, mergeQuota, type Quota, refuseOverQuota } from '../../model/quota.ts'
import { Anchors } from '../../projections/anchors.ts'
import { Applications } from '../../projections/applications.ts'
import { Authorizations } from '../../projections/authorizations.ts'
import { DataProjection } from '../../projections/data-projection.ts'
import { Keys } from '../../projections/keys.ts'
import { Ledger } from '../../projections/ledger.ts'
import { PayoutSettingsTable } from '../../projections/payout-settings.ts'
import { ColumnFiller } from '../collections/column-filler.ts'
import type { DataKeys } from '../encryption/data-keys.ts'
import { PlaintextFollower } from '../encryption/plaintext-follower.ts'
import { Sealer } from '../encryption/sealer.ts'
import { CollectionLock } from '../locks/collection-lock.ts'
import { KeyReservations } from '../locks/key-reservations.ts'
import { Announcer } from './announce-heads.ts'
import { getChainOrigin, openOwnChain } from './open-own-chain.ts'
import type { ResealingProgress, RunningMigration } from './progress.ts'

/** One open application: its chain, and the state that its entries make. */
export type Tenant = {
  readonly application: ApplicationRecord
  readonly schema: string
  readonly chain: Chain
  readonly data: DataProjection
  /** Seals and opens the records of encrypted collections. */
  readonly sealer: Sealer
  /** Fills the plaintext tables of queryable collections. */
  readonly plaintext: PlaintextFollower
  /** Fills the columns of fields that were declared when their tables were large. */
  readonly columns: ColumnFiller
  /** Definitions change one at a time, each seen by the next. */
  readonly definitions: Mutex
  /** Keys reserved by writes that refuse existing keys. */
  readonly keyReservations: KeyReservations
  /** Collections that some work holds alone. */
  readonly collectionLock: CollectionLock
  /** The migrations that run in this process, by collection id. */
  readonly migrating: Map<string, RunningMigration>
  /** The progress of changes of encryption in this process, by collection id. */
  readonly resealing: Map<string, ResealingProgress>
}

export type SystemChain = {
  readonly schema: 'system'
  readonly chain: Chain
  readonly applications: Applications
  readonly keys: Keys
  readonly ledger: Ledger
  readonly payoutSettings: PayoutSettingsTable
  readonly anchors: Anchors
  readonly authorizations: Authorizations
  /** Signs receipts, as it signs the system chain. */
  readonly signer: Signer
  /** Applications and keys change one at a time. */
  readonly definitions: Mutex
}

/** The tables of an application, and their content. */
export type Tables = Pick<Tenant, 'schema' | 'data'>

export type TenantsOptions = {
  readonly database: Database
  readonly world: World
  readonly log: Logger
  readonly loadSigner: (origin: string) => Promise<Signer>
  readonly dataKeys: DataKeys
  /** First part of every chain's origin. */
  readonly serviceName: string
  /** Names this process in leases. */
  readonly holder: string
  /** Throws where nothing new may be taken in (the disk is full). */
  readonly refuseFullDisk?: (() => void) | undefined
  /** The quota of each application for which the operator sets none; unbounded when not given. */
  readonly quota?: Quota
  /** Called when a quota refuses something. */
  readonly onQuota?: () => void
  /** Called when an application was opened, and when what it has defined has changed. */
  readonly onDefinitions?: (tables: Tables) => void
  /** Called with an application's id when there may be views of it to fill. */
  readonly onViews?: (app: string) => void
  /** Called when a view goes stale because it could not be kept up with a write. */
  readonly onStaleView?: () => void
  /** Called after each commit of a block of any chain. */
  readonly onBlock?: (block: { readonly entries: number }) => void
  readonly memory?: ChainMemory
}

const headsIntervalMs = 5_000
const unbounded: Quota = { bytes: null, records: null }
/** An earlier holder applies the rest of its blocks in few transactions. */
const openingsMax = 10

/** Opens the service's own chain, and the chains of applications when they are first asked for. */
export async function openTenants(given: TenantsOptions): Promise<Tenants> {
  const options = { memory: makeChainMemory(given.world), ...given }
  return new Tenants(options, await openUnmoved(() => openSystemChain(options)))
}

async function openSystemChain(options: TenantsOptions): Promise<SystemChain> {
  const applications = new Applications()
  const now = () => options.world.now()
  const keys = new Keys(now)
  const ledger = new Ledger()
  const payoutSettings = new PayoutSettingsTable()
  const anchors = new Anchors()
  const authorizations = new Authorizations(now)
  const chain = await openOwnChain(options, {
    app: 'system',
    schema: 'system',
    projections: [applications, keys, ledger, payoutSettings, authorizations, anchors],
  })
  const signer = await options.loadSigner(getChainOrigin(options.serviceName, 'system'))
  return {
    schema: 'system',
    chain,
    applications,
    keys,
    ledger,
    payoutSettings,
    anchors,
    authorizations,
    signer,
    definitions: new Mutex(),
  }
}

/** Opens a chain, and once more where its tables moved meanwhile. */
async function openUnmoved<T>(open: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof TablesMovedError)) throw error
      if (count === openingsMax)
        throw new Fault('UNAVAILABLE', { cause: error, retryAfterSeconds: 1 })
    }
  }
}

export class Tenants {
  readonly system: SystemChain
  readonly #options: TenantsOptions
  readonly #opening = new Map<number, Promise<Tenant>>()
  readonly #open = new Map<number, Tenant>()
  readonly #openings = new Map<number, number>()
  readonly #closing = new Map<number, Promise<void>>()
  readonly #announcer: Announcer
  readonly #fillingTurns = new Mutex()
  readonly #stopHeads: () => void

  constructor(options: TenantsOptions, system: SystemChain) {
    this.#options = options
    this.system = system
    this.#announcer = new Announcer(system)
    this.#stopHeads = options.world.every(headsIntervalMs, () => {
      this.announceHeads().catch((error) =>
        options.log.warn({ error }, 'heads could not be announced'),
      )
    })
  }

  /** The service's time, in milliseconds since 1970. */
  now(): number {
    return this.#options.world.now()
  }

  /** The application's record, or 404 where there is none or it is archived. */
  requireApplication(appId: string): ApplicationRecord {
    const record = this.requireRecord(appId)
    if (record.status === 'archived') throw makeNoApplicationFault(appId)
    return record
  }

  /** The application's record, though it be archived; 404 where there is none. */
  requireRecord(appId: string): ApplicationRecord {
    const record = this.system.applications.get(appId)
    if (record === undefined) throw makeNoApplicationFault(appId)
    return record
  }

  /** Returns the open application; the first call opens its chain. */
  async load(appId: string): Promise<Tenant> {
    return this.loadEvenArchived(this.requireApplication(appId).app_id)
  }

  /** The same of an archived one, for what was begun before: what its log tells decides on money. */
  async loadEvenArchived(appId: string): Promise<Tenant> {
    const record = this.requireRecord(appId)
    const open = this.#open.get(record.number)
    if (open !== undefined) {
      if (open.chain.failure === undefined) {
        // Its prices and rules may have changed while this process stood still.
        await open.chain.ensureHeld()
        return open
      }
      await this.#forget(record.number, open)
    }
    await this.#closing.get(record.number)?.catch(() => undefined)
    const opening = this.#opening.get(record.number) ?? openUnmoved(() => this.#openTenant(record))
    this.#opening.set(record.number, opening)
    try {
      const tenant = await opening
      this.#open.set(record.number, tenant)
      this.#openings.set(record.number, this.countOpenings(record.number) + 1)
      return tenant
    } catch (error) {
      this.#opening.delete(record.number)
      throw error
    }
  }

  /**
   * Closes every application after a crash of the database, which may have lost relaxed commits of tables; the next
   * caller of each opens it anew from its log.
   */
  reopenAll(): void {
    for (const [number, tenant] of [...this.#open]) {
      this.#forget(number, tenant).catch((error: unknown) => {
        this.#options.log.warn({ error }, 'an application was not closed cleanly')
      })
    }
  }

  /** Counts how often this process has opened an application. */
  countOpenings(number: number): number {
    return this.#openings.get(number) ?? 0
  }

  /** The tenants that are open now. */
  listOpen(): Tenant[] {
    return [...this.#open.values()]
  }

  /** Returns the application's quota. */
  getQuota(application: ApplicationRecord): Quota {
    return mergeQuota(this.#options.quota ?? unbounded, application.quota)
  }

  /** Returns the quota that the operator sets at this moment. */
  getCurrentQuota(appId: string): Quota {
    const now = this.system.applications.get(appId)
    assert(now !== undefined, 'applications are never removed')
    return this.getQuota(now)
  }

  /** QUOTA_EXCEEDED where so much more data does not fit into the application. */
  refuseOverQuota({ application, chain }: Tenant, more: Contents): void {
    const before = chain.contents()
    const after = {
      entries: before.entries + more.entries,
      bytes: before.bytes + more.bytes,
    }
    this.#refuseOverQuota(application, { before, after, isData: true })
  }

  /** All chains that this process holds: the service's own, and those of applications that are open. */
  listChains(): Chain[] {
    return [this.system.chain, ...this.listOpen().map(({ chain }) => chain)]
  }

  /** Writes the heads of chains that grew into the system chain. */
  announceHeads(): Promise<void> {
    return this.#announcer.announce(this.listOpen())
  }

  async close(): Promise<void> {
    this.#stopHeads()
    await this.announceHeads().catch(() => undefined)
    await Promise.allSettled(this.listOpen().map(closeTenant))
    await this.system.chain.close()
  }

  #refuseOverQuota(
    application: ApplicationRecord,
    change: Parameters<typeof refuseOverQuota>[1],
  ): void {
    try {
      refuseOverQuota(this.getQuota(application), change)
    } catch (error) {
      this.#options.onQuota?.()
      throw error
    }
  }

  /** A chain that stopped for good is closed; the next caller opens it anew from what is committed. */
  #forget(number: number, tenant: Tenant): Promise<void> {
    const under = this.#closing.get(number)
    if (under !== undefined || this.#open.get(number) !== tenant) return under ?? Promise.resolve()
    this.#open.delete(number)
    this.#opening.delete(number)
    const closing = closeTenant(tenant).finally(() => this.#closing.delete(number))
    this.#closing.set(number, closing)
    return closing
  }

  async #openTenant(application: ApplicationRecord): Promise<Tenant> {
    const schema = getSchemaName(application.number)
    const getApplicationNow = () => {
      const now = this.system.applications.get(application.app_id)
      assert(now !== undefined, 'applications are never removed')
      return now
    }
    const { world, log, database, dataKeys, onDefinitions, onViews, onStaleView } = this.#options
    const data = new DataProjection({
      onApplied: () => plaintext.notice(),
      onChange: () => {
        onDefinitions?.({ schema, data })
        columns.notice()
      },
      onViews: () => onViews?.(application.app_id),
      ticks: () => world.ticks(),
      live: {
        now: () => world.now(),
        onStale: (view, reason, error) => {
          log.warn({ app: application.app_id, view: view.name, reason, error }, 'a view is stale')
          onStaleView?.()
        },
      },
    })
    const app = application.app_id
    const sealer = new Sealer(app, { world, dataKeys })
    const plaintext = new PlaintextFollower({ app, schema, database, world, log, data, sealer })
    const turns = this.#fillingTurns
    const { refuseFullDisk } = this.#options
    const columns = new ColumnFiller({
      app,
      schema,
      database,
      world,
      log,
      data,
      turns,
      refuseFullDisk,
    })
    const chain = await openOwnChain(this.#options, {
      app: application.app_id,
      schema,
      projections: [data],
      relaxedTables: true,
      refuseGrowth: (entries, { before, after }) => {
        refuseUnsealed(data.catalog, entries)
        if (entries.every(isOwnWork)) return
        this.#refuseOverQuota(getApplicationNow(), { before, after, isData: entries.some(isData) })
      },
      // Keys that are opened from here on are all that an earlier holder of the chain sealed by.
      onHeld: () => dataKeys.forget(app),
    })
    onDefinitions?.({ schema, data })
    if (data.catalog.views.size > 0) onViews?.(application.app_id)
    const tenant: Tenant = {
      get application() {
        return getApplicationNow()
      },
      schema,
      chain,
      data,
      sealer,
      plaintext,
      columns,
      definitions: new Mutex(),
      keyReservations: new KeyReservations(),
      collectionLock: new CollectionLock(this.#options.world),
      migrating: new Map(),
      resealing: new Map(),
    }
    plaintext.notice()
    columns.start(chain)
    tenant.sealer.shredForgotten(tenant).catch((error: unknown) => {
      log.warn({ error, app: application.app_id }, 'keys of deleted collections were not deleted')
    })
    return tenant
  }
}

async function closeTenant({ chain, plaintext, columns }: Tenant): Promise<void> {
  await Promise.all([plaintext.close(), columns.close()])
  await chain.close()
}

/** The database schema of an application. */
export function getSchemaName(number: number): string {
  return `app_${number}`
}

function makeNoApplicationFault(appId: string): Fault {
  return new Fault('APPLICATION_NOT_FOUND', { message: `There is no application ${appId}` })
}
