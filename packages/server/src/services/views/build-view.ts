import { assert, requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Database, Queryable } from '../../database/database.ts'
import { findReadableById } from '../../model/catalog.ts'
import type { ForeignPositions, StoredView } from '../../model/definitions.ts'
import { findGrant, findGrantedPrice } from '../../model/grants.ts'
import { findHiddenUse } from '../../model/policy.ts'
import type { Readable } from '../../model/readable.ts'
import { anyFields, type ViewPlan } from '../../model/view-plan.ts'
import { readStats } from '../../projections/collection-store.ts'
import { viewAdvanceMs } from '../../projections/live-views.ts'
import {
  markAt,
  noteMeanings,
  type Position,
  readProgress,
  type ViewProgress,
} from '../../projections/view-state.ts'
import {
  makeViewPlace,
  replaceStateTables,
  runViewStatement,
} from '../../projections/view-tables.ts'
import type { Source, UsedFields } from '../../query/join.ts'
import { hasSubQueries } from '../../query/tree/map-expression.ts'
import type { Positions, ViewPlace } from '../../views/view-program.ts'
import type { Tenant } from '../applications/tenants.ts'
import { type BuildWork, makeCountedPlace, makeSessionName } from './build-progress.ts'
import { listOversized, makeViewTooLargeFault } from './view-sizes.ts'
import { enterSession, lockWatermark, readWatermark, renameSession } from './view-store.ts'

/** Entries that a live view may lack when it joins the writes; a larger gap is closed beside them. */
const viewGapEntriesMax = 1_000
/** Longest time of one statement that fills a view. */
export const viewBuildMs = 3600 * 1000

export type BuildPorts = {
  readonly database: Database
  readonly world: World
  readonly tenantOf: (app: string) => Promise<Tenant>
  /** Bytes that the views of an application may take on disk; null is no bound. */
  readonly viewBytesMax: (tenant: Tenant) => number | null
  /** Notes a session that begins to work; throws where the builder is closed. */
  readonly entered: (pid: number) => void
  readonly left: (pid: number) => void
  /** The progress that callers are told. */
  readonly work: BuildWork
}

/** Another session works on the view, or it was changed meanwhile: the remaining work is looked for again. */
export class Superseded extends Error {}

/** The number of attempts to catch up after which a live view counts as one that cannot keep up. */
const catchUpsMax = 50

/** Brings a view to where it is wanted, in transactions that leave readers the old rows until the new are whole. */
export async function buildView(
  ports: BuildPorts,
  tenant: Tenant,
  view: StoredView,
): Promise<void> {
  const progress = (await readProgress(ports.database, tenant.schema)).get(view.id)
  const planned = tenant.data.catalog.views.get(view.id)
  if (progress === undefined || planned === undefined) throw new Superseded()
  if (planned.plan === undefined) {
    await ports.database.transaction((tx) => replaceStateTables(tx, tenant.schema, planned))
    throw new Fault('CONFLICT', { message: 'its definition cannot be read any more; replace it' })
  }
  const build = { ports, tenant, view, plan: planned.plan }
  if (view.refresh_mode === 'live') await makeLive(build, progress)
  else await refresh(build, progress)
}

type ViewBuild = {
  readonly ports: BuildPorts
  readonly tenant: Tenant
  readonly view: StoredView
  readonly plan: ViewPlan
}

/** Refreshes by the changes where that is possible, otherwise by the difference to the whole result. */
async function refresh(build: ViewBuild, progress: ViewProgress): Promise<void> {
  const { view, plan } = build
  const { wanted, whole } = progress
  const place = await requireGrantedPlace(build, wanted.positions)
  const isForeign = view.reads.some(({ app }) => app !== view.app)
  const byChange = whole && plan.program.notIncrementalReason === undefined && !isForeign
  if (byChange) setGoal(build, 'entries', wanted.leaf - progress.leaf)
  await runInTransaction(build, async (tx) => {
    if (byChange) await advance(build, tx, { place, from: progress.leaf, to: wanted.leaf })
    else await fill(build, tx, { place, to: wanted.leaf, foreign: wanted.positions })
    const { positions } = wanted
    await settle(tx, build, { at: wanted, status: 'lazy', positions, revision: progress.revision })
  })
  build.tenant.data.setFilled(view)
}

/**
 * Fills as of the present watermark, adds later changes until few are left, and then, while the applier waits, the
 * rest; from there the applier goes on.
 */
async function makeLive(build: ViewBuild, progress: ViewProgress): Promise<void> {
  const { ports, tenant, view } = build
  let { revision } = progress
  const place = makeViewPlace(tenant.schema, view, tenant.data.catalog)
  let at: Position = progress
  if (!progress.whole) {
    const to = await readWatermark(ports.database, tenant.schema)
    await runInTransaction(build, async (tx) => {
      await fill(build, tx, { place, to: to.leaf, foreign: {} })
      await settle(tx, build, { at: to, status: 'building', revision })
    })
    tenant.data.setFilled(view)
    at = to
    revision += 1
  }
  let msPerEntry = 0
  for (let time = 0; ; time++) {
    const to = await readWatermark(ports.database, tenant.schema)
    const gap = to.leaf - at.leaf
    // The first round does not make the applier wait, so that little is left for which it must.
    const isQuick = gap * msPerEntry <= viewAdvanceMs / 2
    if (gap === 0 || (time > 0 && gap <= viewGapEntriesMax && isQuick)) break
    if (time === catchUpsMax)
      throw new Fault('CONFLICT', { message: 'it cannot keep up with what is written' })
    if (progress.whole && time === 0) setGoal(build, 'entries', gap)
    const from = at
    const startedMs = ports.world.ticks()
    await runInTransaction(build, async (tx) => {
      await advance(build, tx, { place, from: from.leaf, to: to.leaf })
      await settle(tx, build, { at: to, status: 'building', revision })
    })
    msPerEntry = (ports.world.ticks() - startedMs) / gap
    at = to
    revision += 1
  }
  await runInTransaction(build, async (tx) => {
    const to = await lockWatermark(tx, tenant.schema)
    await advance(build, tx, { place, from: at.leaf, to: to.leaf })
    await settle(tx, build, { at: to, status: 'live', revision })
  })
}

function setGoal({ ports: { work } }: ViewBuild, unit: BuildWork['unit'], total: number): void {
  Object.assign(work, { unit, total })
}

/** Says in the session's name how far the work is. */
function publishProgress({ ports, tenant, view }: ViewBuild, tx: Queryable): Promise<void> {
  return renameSession(tx, makeSessionName(tenant, view, ports.work))
}

/** Makes the view match its definition at the position, whatever it holds now. */
async function fill(
  build: ViewBuild,
  tx: Queryable,
  goal: { place: ViewPlace; to: number; foreign: ForeignPositions },
): Promise<void> {
  const { ports, view, plan } = build
  const reads = new Map<string, number>()
  // A condition that is counted by would keep PostgreSQL from making a join of such a sub-query.
  const isCounted = !hasSubQueries(plan.query)
  const place = isCounted ? makeCountedPlace(goal.place, reads) : goal.place
  const statements = plan.program.fill(place, makePositionsAt(view, goal.to, goal.foreign))
  setGoal(build, 'records', await countRecordsToRead(build, tx, reads))
  await publishProgress(build, tx)
  if (await noteMeanings(tx, build.tenant.schema, view))
    await replaceStateTables(tx, build.tenant.schema, { view, plan })
  for (const statement of statements) await runViewStatement(tx, statement)
  ports.work.done = ports.work.total
  await publishProgress(build, tx)
}

/** The entries that one statement adds, so that progress can be told between statements. */
const stepEntries = 100_000

/** Brings the view on by the changes between two positions of its own application's chain. */
async function advance(
  build: ViewBuild,
  tx: Queryable,
  span: { place: ViewPlace; from: number; to: number },
): Promise<void> {
  const { ports, plan } = build
  const { place, to } = span
  let { from } = span
  do {
    const start = from
    const end = Math.min(start + stepEntries, to)
    const statements = plan.program.advance(
      place,
      () => start,
      () => end,
    )
    for (const statement of statements) await runViewStatement(tx, statement)
    ports.work.done += end - start
    await publishProgress(build, tx)
    from = end
  } while (from < to)
}

/** Counts the live records of each source, as often as the source is read. */
async function countRecordsToRead(
  { ports, view }: ViewBuild,
  tx: Queryable,
  reads: ReadonlyMap<string, number>,
): Promise<number> {
  let total = 0
  for (const { model, app, id } of view.reads) {
    const { schema } = await ports.tenantOf(app)
    const stats = (await readStats(tx, schema)).get(id)
    total += (stats?.documents ?? 0) * (reads.get(model) ?? 0)
  }
  return total
}

type SettledState = {
  readonly at: Position
  readonly status: 'building' | 'live' | 'lazy'
  readonly positions?: ForeignPositions
  readonly revision: number
}

async function settle(tx: Queryable, build: ViewBuild, done: SettledState): Promise<void> {
  const { ports, tenant, view } = build
  const { at, status, positions = {}, revision } = done
  const sizes = await listOversized(tx, tenant, ports.viewBytesMax(tenant))
  if (sizes.length > 0) throw makeViewTooLargeFault(sizes, view)
  const mark = { views: [view.id], at, status, positions, revision, now: ports.world.now() }
  if (!(await markAt(tx, tenant.schema, mark))) throw new Superseded()
  ports.world.failpoint?.(status === 'live' ? 'view.beforeLive' : 'view.beforeFilled')
}

/**
 * Bounds the time of work on a view. Where two work on it at once (a process that was killed may be survived by its
 * session), one of them finds the revision changed at the end.
 */
async function runInTransaction(
  { ports, tenant, view }: ViewBuild,
  work: (tx: Queryable) => Promise<void>,
): Promise<void> {
  let entered: number | undefined
  try {
    await ports.database.transaction(
      async (tx) => {
        const pid = await enterSession(tx, makeSessionName(tenant, view, ports.work))
        ports.entered(pid)
        entered = pid
        ports.work.pid = pid
        await work(tx)
      },
      { statementTimeoutMs: viewBuildMs },
    )
  } finally {
    ports.work.pid = undefined
    if (entered !== undefined) ports.left(entered)
  }
  ports.world.failpoint?.('view.committed')
}

/** Makes the position of each model: the number of its entries that count. */
export function makePositionsAt(
  view: StoredView,
  leaf: number,
  foreign: ForeignPositions,
): Positions {
  const apps = new Map(view.reads.map(({ model, app }) => [model, app]))
  return (model) => {
    const app = requirePresent(apps.get(model), `the application of ${model}`)
    return app === view.app ? leaf : requirePresent(foreign[app], `the position of ${app}`)
  }
}

/**
 * Resolves the tables that the view reads; GRANT_NEEDED where another application's source is gone or not granted
 * (any more).
 */
async function requireGrantedPlace(
  { ports, tenant, view }: ViewBuild,
  positions: ForeignPositions,
): Promise<ViewPlace> {
  await checkGrants(ports, tenant, view)
  const place = makeViewPlace(tenant.schema, view, tenant.data.catalog)
  const foreign = new Map<string, Source>()
  for (const { model, app, id } of view.reads) {
    if (app === view.app) continue
    const owner = await ports.tenantOf(app)
    const collection = owner.data.catalog.byId.get(id)
    if (collection === undefined) throw makeSourceGoneFault(model)
    const wanted = requirePresent(positions[app], `the position of ${app}`)
    // After a crash its tables may be behind for a moment.
    if ((await readWatermark(ports.database, owner.schema)).leaf < wanted)
      throw new Fault('UNAVAILABLE', { message: `the tables of ${app} are behind` })
    foreign.set(model, { schema: owner.schema, table: collection.table })
  }
  return { ...place, resolve: (model) => foreign.get(model) ?? place.resolve(model) }
}

/**
 * Checks that every source of another application, also behind the views that this one is made of, is granted as it
 * is used.
 */
export async function checkGrants(
  { tenantOf }: Pick<BuildPorts, 'tenantOf'>,
  tenant: Tenant,
  view: StoredView,
): Promise<void> {
  for (const { app, id, model } of view.sources) {
    const owner = app === view.app ? tenant : await tenantOf(app).catch(throwIfGone(model))
    const source = findReadableById(owner.data.catalog, id)
    if (source === undefined) throw makeSourceGoneFault(model)
    const used = tenant.data.catalog.views.get(view.id)?.plan?.uses.get(model) ?? anyFields
    if (owner !== tenant) refuseUngrantedUse(owner, source, { model, grantee: view.app, used })
    if (source.kind === 'collection') continue
    assert(source.view.id !== view.id, 'a view is not made of itself')
    await checkGrantsBehind({ tenantOf }, tenant, { model, owner, view: source.view })
  }
}

/** Refuses a use that reads of the view would be refused for, with the reason that is reported for the stale view. */
function refuseUngrantedUse(
  { data: { catalog } }: Tenant,
  source: Readable,
  by: { readonly model: string; readonly grantee: string; readonly used: UsedFields },
): void {
  const { model, grantee, used } = by
  if (findGrant(catalog, source, grantee) === undefined)
    throw new Fault('GRANT_NEEDED', {
      message: `the owner of ${model} does not grant its use (any more)`,
    })
  const hidden = findHiddenUse(source.policy, used)
  if (hidden !== undefined)
    throw new Fault('FIELD_NOT_OFFERED', {
      message: `the owner of ${model} does not offer ${hidden.field ?? 'all fields'} to ${hidden.use} by (any more)`,
      details: { ...(hidden.field !== undefined && { field: hidden.field }), use: hidden.use },
    })
  if (findGrantedPrice(catalog, source, grantee) === undefined)
    throw new Fault('GRANT_NEEDED', {
      message: `the owner of ${model} has granted its use at its derive price, and lets nobody derive from it any more`,
    })
}

/**
 * Checks the grants behind a view that another view of `tenant` is made of. The refusal does not name the sources
 * of another application's view: its owner need not have told them.
 */
export async function checkGrantsBehind(
  ports: Pick<BuildPorts, 'tenantOf'>,
  tenant: Tenant,
  { model, owner, view }: { model: string; owner: Tenant; view: StoredView },
): Promise<void> {
  try {
    await checkGrants(ports, owner, view)
  } catch (error) {
    const isRefusal =
      error instanceof Fault && ['GRANT_NEEDED', 'FIELD_NOT_OFFERED'].includes(error.code)
    if (owner === tenant || !isRefusal) throw error
    throw new Fault('GRANT_NEEDED', {
      message: `a source of ${model} is gone, or its owner does not grant its use (any more)`,
    })
  }
}

/** An archived application has no sources any more. */
function throwIfGone(model: string) {
  return (error: unknown): never => {
    throw error instanceof Fault && error.status === 404 ? makeSourceGoneFault(model) : error
  }
}

function makeSourceGoneFault(model: string): Fault {
  return new Fault('GRANT_NEEDED', { message: `its source ${model} is gone` })
}
