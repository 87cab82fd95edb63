import type { Logger } from 'pino'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { cancelSession } from '../../database/cancel-session.ts'
import type { Database } from '../../database/database.ts'
import type { StoredView } from '../../model/definitions.ts'
import { describeReason, isTransactionError } from '../../projections/live-views.ts'
import {
  isWhole,
  markStale,
  readProgress,
  type ViewProgress,
} from '../../projections/view-state.ts'
import type { Tenant } from '../applications/tenants.ts'
import { type BuildWork, makeWork } from './build-progress.ts'
import { type BuildPorts, buildView, Superseded } from './build-view.ts'
import { deleteReplaced } from './delete-replaced.ts'
import { listOversized, makeViewTooLargeFault, type ViewSize } from './view-sizes.ts'

/** Attempts at a view before it stops. */
const viewAttemptsMax = 4
/** Views that one process fills at once, and of one application. */
const viewBuildsMax = 3
const viewBuildsPerApplicationMax = 2

/** One application's views, as the builder knows them. */
type ViewSite = {
  /** True where there may be work. */
  isDue: boolean
  isLookedAt: boolean
  /** Views to be worked on, by id. */
  waiting: readonly StoredView[]
  /** By view id: attempts that failed. */
  readonly attempts: Map<string, number>
  /** Views that back off until their next attempt. */
  readonly backingOff: Set<string>
  /** By view id: when a live view was caught up last, and how often in close succession. */
  readonly caughtUp: Map<string, CaughtUp>
  /** Callbacks that wait until no work is left for a view, by its id. */
  readonly watchers: Map<string, (() => void)[]>
}

type CaughtUp = { readonly atMs: number; readonly times: number; hasPaused: boolean }

const pauseMinMs = 500
const pauseMaxMs = 60_000
/**
 * A live view that falls behind again within this time has to pause, because each catch-up slows down the writes.
 */
const steadyMs = 60_000
/** The pause after the database did not answer. */
const lookAgainMs = 2_000
/**
 * The interval at which views that may have grown are measured: their limit can be passed by what is written in
 * that time.
 */
const measureMs = 1_000

/**
 * Fills, repairs and refreshes views concurrently with writes: compares their wanted positions with their progress,
 * at every opening and every change, so that no state of the work is stored and interrupted work begins again.
 */
export class ViewBuilder {
  readonly #ports: Omit<BuildPorts, 'work'>
  readonly #tenantOf: (app: string) => Promise<Tenant>
  readonly #log: Logger
  readonly #world: World
  readonly #database: Database
  readonly #onStale: () => void
  readonly #sites = new Map<string, ViewSite>()
  /** By application and view. */
  readonly #working = new Map<
    string,
    {
      readonly app: string
      readonly work: BuildWork
      readonly done: Promise<void>
    }
  >()
  readonly #looking = new Set<Promise<void>>()
  readonly #pids = new Set<number>()
  readonly #timers = new Set<() => void>()
  /** The sizes of the chains when their views were measured. */
  readonly #measured = new WeakMap<Tenant, number>()
  readonly #openTenants: () => readonly Tenant[]
  #measuring: Promise<void> | undefined
  #closed = false

  constructor(parts: {
    database: Database
    world: World
    log: Logger
    tenantOf: (app: string) => Promise<Tenant>
    /** The applications that are open. */
    tenants: () => readonly Tenant[]
    viewBytesMax: (tenant: Tenant) => number | null
    onStale: () => void
  }) {
    const { database, world, tenantOf, viewBytesMax } = parts
    this.#openTenants = parts.tenants
    this.#database = database
    this.#world = world
    this.#log = parts.log
    this.#tenantOf = tenantOf
    this.#onStale = parts.onStale
    this.#ports = {
      database,
      world,
      tenantOf,
      viewBytesMax,
      entered: (pid) => {
        if (this.#closed) throw new Superseded()
        this.#pids.add(pid)
      },
      left: (pid) => this.#pids.delete(pid),
    }
  }

  /** Begins to measure views from time to time, once there are applications to ask for. */
  start(): void {
    const stop = this.#world.every(measureMs, () => {
      this.#measuring ??= this.#measure()
        .catch((error: unknown) => this.#log.warn({ error }, 'views could not be measured'))
        .finally(() => {
          this.#measuring = undefined
        })
    })
    this.#timers.add(stop)
  }

  /** Notes that there may be work on the views of an application. */
  notice(app: string): void {
    this.#getSite(app).isDue = true
    this.#look(app)
  }

  /** Resolves once no work is left for the view: it is filled, or stale. */
  whenDone(app: string, view: string): Promise<void> {
    return new Promise((resolve) => {
      const { watchers } = this.#getSite(app)
      watchers.set(view, [...(watchers.get(view) ?? []), resolve])
      this.notice(app)
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const stop of this.#timers) stop()
    await this.#measuring
    for (;;) {
      const under = [...this.#looking, ...[...this.#working.values()].map(({ done }) => done)]
      if (under.length === 0) break
      for (const pid of this.#pids) await cancelSession(this.#database, pid).catch(() => undefined)
      const ended = Promise.allSettled(under).then(() => undefined)
      await Promise.race([ended, this.#pause(50)])
    }
    for (const site of this.#sites.values()) endWatching(site)
  }

  #getSite(app: string): ViewSite {
    const known = this.#sites.get(app)
    if (known !== undefined) return known
    const site: ViewSite = {
      isDue: false,
      isLookedAt: false,
      waiting: [],
      attempts: new Map(),
      backingOff: new Set(),
      caughtUp: new Map(),
      watchers: new Map(),
    }
    this.#sites.set(app, site)
    return site
  }

  #look(app: string): void {
    const site = this.#getSite(app)
    if (this.#closed || site.isLookedAt || !site.isDue) return
    site.isDue = false
    site.isLookedAt = true
    const looking = this.#lookAt(app, site)
      .catch((error: unknown) => {
        // No work is done on the views of an archived application, so nobody waits for it.
        if (error instanceof Fault && error.code === 'APPLICATION_NOT_FOUND')
          return endWatching(site)
        this.#log.warn({ app, error }, 'views could not be looked at')
        this.#later(lookAgainMs, () => this.notice(app))
      })
      .finally(() => {
        site.isLookedAt = false
        this.#looking.delete(looking)
        this.#look(app)
        this.#startMore()
      })
    this.#looking.add(looking)
  }

  /** Finds the views that need work, deletes replaced ones, and resolves the watchers of views without work. */
  async #lookAt(app: string, site: ViewSite): Promise<void> {
    // A watcher that comes after this look has begun waits for the next one: its change may not be visible yet.
    const asked = new Map(site.watchers)
    const tenant = await this.#tenantOf(app)
    const progress = await readProgress(this.#database, tenant.schema)
    const views = [...tenant.data.catalog.views.values()].map(({ view }) => view)
    for (const view of views)
      if (isWhole(progress.get(view.id))) await this.#deleteReplaced(tenant, view)
    site.waiting = views.filter((view) => isToDo(progress.get(view.id)))
    const busy = new Set(site.waiting.map(({ id }) => id))
    for (const [view, resolves] of asked) {
      if (busy.has(view) || this.#working.has(makeKey(app, view))) continue
      const later = (site.watchers.get(view) ?? []).filter((one) => !resolves.includes(one))
      if (later.length === 0) site.watchers.delete(view)
      else site.watchers.set(view, later)
      for (const resolve of resolves) resolve()
    }
  }

  /** Deletes the view that a filled one replaces; until here reads got the old one, and go on so where it is needed. */
  async #deleteReplaced(tenant: Tenant, view: StoredView): Promise<void> {
    const problem = await deleteReplaced(this.#database, tenant, view)
    if (problem !== undefined) await this.#leaveStale(tenant, view, problem)
  }

  #startMore(): void {
    for (const [app, site] of this.#sites) {
      for (const view of site.waiting) {
        if (this.#closed || this.#working.size >= viewBuildsMax) return
        const key = makeKey(app, view.id)
        const own = [...this.#working.values()].filter((work) => work.app === app)
        if (own.length >= viewBuildsPerApplicationMax) break
        if (this.#working.has(key) || site.backingOff.has(view.id)) continue
        if (this.#pausesBehind(app, site, view)) continue
        const work = makeWork()
        const done = this.#work(app, { site, view, work }).finally(() => {
          this.#working.delete(key)
          this.notice(app)
        })
        this.#working.set(key, { app, work, done })
      }
    }
  }

  /** Never rejects. */
  async #work(
    app: string,
    { site, view, work }: { site: ViewSite; view: StoredView; work: BuildWork },
  ): Promise<void> {
    // The view is looked for again after this work.
    site.waiting = site.waiting.filter((one) => one !== view)
    try {
      await buildView({ ...this.#ports, work }, await this.#tenantOf(app), view)
      site.attempts.delete(view.id)
      if (view.refresh_mode === 'live') this.#noteCaughtUp(site, view)
    } catch (cause) {
      const error = work.stopped ?? cause
      await this.#failed(app, { site, view, error }).catch((second: unknown) => {
        this.#log.warn({ app, view: view.name, error: second }, 'a view could not be marked stale')
        this.#backOff(app, { site, view, ms: pauseMaxMs })
      })
    }
  }

  #noteCaughtUp({ caughtUp }: ViewSite, { id }: StoredView): void {
    const atMs = this.#world.ticks()
    const last = caughtUp.get(id)
    const isAgain = last !== undefined && atMs - last.atMs < steadyMs + pauseMaxMs
    caughtUp.set(id, { atMs, times: isAgain ? last.times + 1 : 0, hasPaused: false })
  }

  /** Backs off from a live view that was caught up a moment ago and is behind again. */
  #pausesBehind(app: string, site: ViewSite, view: StoredView): boolean {
    const last = site.caughtUp.get(view.id)
    const isSteady = last === undefined || this.#world.ticks() - last.atMs >= steadyMs
    if (isSteady || last.hasPaused) return false
    last.hasPaused = true
    this.#backOff(app, { site, view, ms: Math.min(pauseMinMs * 2 ** last.times, pauseMaxMs) })
    return true
  }

  async #failed(
    app: string,
    { site, view, error }: { site: ViewSite; view: StoredView; error: unknown },
  ): Promise<void> {
    if (error instanceof Superseded || this.#closed) {
      this.#backOff(app, { site, view, ms: pauseMinMs })
      return
    }
    const isPassing = isTransactionError(error) || (error instanceof Fault && error.status === 503)
    const attempts = (site.attempts.get(view.id) ?? 0) + (isPassing ? 0 : 1)
    site.attempts.set(view.id, attempts)
    this.#log.warn({ app, view: view.name, attempts, error }, 'a view was not filled')
    const isFinal = error instanceof Fault && !isPassing
    if (!isFinal && attempts < viewAttemptsMax) {
      this.#backOff(app, { site, view, ms: Math.min(pauseMinMs * 2 ** attempts, pauseMaxMs) })
      return
    }
    site.attempts.delete(view.id)
    await this.#leaveStale(await this.#tenantOf(app), view, error)
  }

  async #leaveStale({ schema }: Tenant, view: StoredView, error: unknown): Promise<void> {
    await markStale(this.#database, schema, { view: view.id, reason: describeReason(error, view) })
    this.#onStale()
  }

  /**
   * Stops views that outgrow their limit: a few records can make more rows than there is room for, and none of
   * these rows is in the log.
   */
  async #measure(): Promise<void> {
    for (const tenant of this.#openTenants()) {
      const { size } = tenant.chain.head()
      const under = [...this.#working.values()].filter(
        ({ app }) => app === tenant.application.app_id,
      )
      if (tenant.data.catalog.views.size === 0) continue
      if (under.length === 0 && this.#measured.get(tenant) === size) continue
      this.#measured.set(tenant, size)
      const bytesMax = this.#ports.viewBytesMax(tenant)
      const sizes = await this.#database.transaction((tx) => listOversized(tx, tenant, bytesMax), {
        statementTimeoutMs: measureMs,
      })
      if (sizes.length > 0) await this.#stopLargest(tenant, sizes)
    }
  }

  /** A view that is being filled is stopped first: the others had room before. */
  async #stopLargest(tenant: Tenant, sizes: readonly ViewSize[]): Promise<void> {
    const findWork = ({ view }: ViewSize) =>
      this.#working.get(makeKey(tenant.application.app_id, view.id))?.work
    const filling = sizes.find((one) => findWork(one) !== undefined)
    const work = filling && findWork(filling)
    if (filling !== undefined && work !== undefined) {
      work.stopped = makeViewTooLargeFault(sizes, filling.view)
      if (work.pid !== undefined) await cancelSession(this.#database, work.pid)
      return
    }
    const progress = await readProgress(this.#database, tenant.schema)
    const live = sizes.find(({ view }) => progress.get(view.id)?.status === 'live')
    if (live !== undefined)
      await this.#leaveStale(tenant, live.view, makeViewTooLargeFault(sizes, live.view))
  }

  /** Backs off from a view for a while. */
  #backOff(
    app: string,
    { site, view, ms }: { site: ViewSite; view: StoredView; ms: number },
  ): void {
    site.backingOff.add(view.id)
    this.#later(ms, () => {
      site.backingOff.delete(view.id)
      this.notice(app)
    })
  }

  #later(ms: number, call: () => void): void {
    if (this.#closed) return
    const stop = this.#world.every(ms, () => {
      stop()
      this.#timers.delete(stop)
      call()
    })
    this.#timers.add(stop)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#world.every(ms, () => {
        stop()
        resolve()
      })
    })
  }
}

function endWatching({ watchers }: ViewSite): void {
  const all = [...watchers.values()].flat()
  watchers.clear()
  for (const resolve of all) resolve()
}

function makeKey(app: string, view: string): string {
  return `${app} ${view}`
}

function isToDo(progress: ViewProgress | undefined): boolean {
  if (progress === undefined) return false
  const { status, wanted, leaf } = progress
  return status === 'building' || (status === 'lazy' && wanted.leaf > leaf)
}
