import { limits } from '@tollbase/contract/limits'
import { assert, present } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Database, Queryable } from '../../database/database.ts'
import { readableOfId } from '../../model/catalog.ts'
import type { CollectionState, ForeignPositions, StoredView } from '../../model/definitions.ts'
import { grantedPriceOf, grantOf } from '../../model/grants.ts'
import { hiddenUse } from '../../model/policy.ts'
import type { ViewPlan } from '../../model/view-plan.ts'
import { readStats } from '../../projections/collection-store.ts'
import { placeOf, run } from '../../projections/view-projection.ts'
import {
  markAt,
  type Position,
  readProgress,
  type ViewProgress,
} from '../../projections/view-state.ts'
import type { Source, UsedFields } from '../../query/join.ts'
import { hasSubQueries } from '../../views/map-expression.ts'
import type { Positions, ViewPlace } from '../../views/view-program.ts'
import type { Tenant } from '../applications/tenancy.ts'
import { countedPlace, sessionName, type Work } from './build-progress.ts'
import { oversized, tooLargeView } from './view-sizes.ts'
import { enterSession, lockedWatermark, renameSession, watermarkOf } from './view-store.ts'

export type BuildPorts = {
  readonly database: Database
  readonly world: World
  readonly tenantOf: (app: string) => Promise<Tenant>
  /** Bytes that the views of an application may take on disk; null is no bound. */
  readonly viewBytesMax: (tenant: Tenant) => number | null
  /** A session is at work, or would be: throws where it is over. */
  readonly entered: (pid: number) => void
  readonly left: (pid: number) => void
  /** What is told of the work to whoever asks. */
  readonly work: Work
}

/** Somebody else is at the view, or it was changed while it was worked on: what is to be done is looked for anew. */
export class Superseded extends Error {}

/** How often a live view is caught up before it counts as one that cannot keep up. */
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
  if (planned.plan === undefined)
    throw new Fault('CONFLICT', { message: 'its definition cannot be read any more; replace it' })
  const build = { ports, tenant, view, plan: planned.plan }
  if (view.refresh_mode === 'live') await makeLive(build, progress)
  else await refresh(build, progress)
}

type Build = {
  readonly ports: BuildPorts
  readonly tenant: Tenant
  readonly view: StoredView
  readonly plan: ViewPlan
}

/** By what has changed where that is possible, otherwise by the difference to all of it. */
async function refresh(build: Build, progress: ViewProgress): Promise<void> {
  const { view, plan } = build
  const { wanted, whole } = progress
  const place = await placeWithGrants(build, wanted.positions)
  const isForeign = view.reads.some(({ app }) => app !== view.app)
  const byChange = whole && plan.program.obstacle === undefined && !isForeign
  if (byChange) toDo(build, 'entries', wanted.leaf - progress.leaf)
  await inTransaction(build, async (tx) => {
    if (byChange) await advance(build, tx, { place, from: progress.leaf, to: wanted.leaf })
    else await fill(build, tx, { place, to: wanted.leaf, foreign: wanted.positions })
    const { positions } = wanted
    await settle(tx, build, { at: wanted, status: 'lazy', positions, revision: progress.revision })
  })
  build.tenant.data.setFilled(view)
}

/**
 * Fills as of the watermark of the moment, adds what came meanwhile until that is little, and then, while the lane
 * waits, the rest; from there on the lane goes on.
 */
async function makeLive(build: Build, progress: ViewProgress): Promise<void> {
  const { ports, tenant, view } = build
  let { revision } = progress
  const place = placeOf(tenant.schema, view, tenant.data.catalog)
  let at: Position = progress
  if (!progress.whole) {
    const to = await watermarkOf(ports.database, tenant.schema)
    await inTransaction(build, async (tx) => {
      await fill(build, tx, { place, to: to.leaf, foreign: {} })
      await settle(tx, build, { at: to, status: 'building', revision })
    })
    tenant.data.setFilled(view)
    at = to
    revision += 1
  }
  for (let time = 0; ; time++) {
    const to = await watermarkOf(ports.database, tenant.schema)
    const gap = to.leaf - at.leaf
    // Once it is caught up without the lane waiting, so that little is left for which it does.
    if (gap === 0 || (time > 0 && gap <= limits.viewGapEntriesMax)) break
    if (time === catchUpsMax)
      throw new Fault('CONFLICT', { message: 'it cannot keep up with what is written' })
    if (progress.whole && time === 0) toDo(build, 'entries', gap)
    const from = at
    await inTransaction(build, async (tx) => {
      await advance(build, tx, { place, from: from.leaf, to: to.leaf })
      await settle(tx, build, { at: to, status: 'building', revision })
    })
    at = to
    revision += 1
  }
  await inTransaction(build, async (tx) => {
    const to = await lockedWatermark(tx, tenant.schema)
    await advance(build, tx, { place, from: at.leaf, to: to.leaf })
    await settle(tx, build, { at: to, status: 'live', revision })
  })
}

function toDo({ ports: { work } }: Build, unit: Work['unit'], total: number): void {
  Object.assign(work, { unit, total })
}

/** Says in the session's name how far the work is. */
function tell({ ports, tenant, view }: Build, tx: Queryable): Promise<void> {
  return renameSession(tx, sessionName(tenant, view, ports.work))
}

/** Brings the view to what its definition is at the position, from whatever it holds. */
async function fill(
  build: Build,
  tx: Queryable,
  goal: { place: ViewPlace; to: number; foreign: ForeignPositions },
): Promise<void> {
  const { ports, view, plan } = build
  const reads = new Map<string, number>()
  // A condition that is counted by would keep PostgreSQL from making a join of such a sub-query.
  const isCounted = !hasSubQueries(plan.query)
  const place = isCounted ? countedPlace(goal.place, reads) : goal.place
  const statements = plan.program.fill(place, positionsAt(view, goal.to, goal.foreign))
  toDo(build, 'records', await recordsToRead(build, tx, reads))
  await tell(build, tx)
  for (const statement of statements) await run(tx, statement)
  ports.work.done = ports.work.total
  await tell(build, tx)
}

/** So many entries are added by one statement, so that it can be said how far it is. */
const stepEntries = 100_000

/** Brings the view on by the changes between two positions of its own application's chain. */
async function advance(
  build: Build,
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
    for (const statement of statements) await run(tx, statement)
    ports.work.done += end - start
    await tell(build, tx)
    from = end
  } while (from < to)
}

/** What is live of each source, as often as it is read. */
async function recordsToRead(
  { ports, view }: Build,
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

type Settled = {
  readonly at: Position
  readonly status: 'building' | 'live' | 'lazy'
  readonly positions?: ForeignPositions
  readonly revision: number
}

async function settle(tx: Queryable, build: Build, done: Settled): Promise<void> {
  const { ports, tenant, view } = build
  const { at, status, positions = {}, revision } = done
  const sizes = await oversized(tx, tenant, ports.viewBytesMax(tenant))
  if (sizes.length > 0) throw tooLargeView(sizes, view)
  const mark = { views: [view.id], at, status, positions, revision, now: ports.world.now() }
  if (!(await markAt(tx, tenant.schema, mark))) throw new Superseded()
  ports.world.reach?.(status === 'live' ? 'view.beforeLive' : 'view.beforeFilled')
}

/**
 * Nobody works on a view for longer than he may. Of two who do at once (a process that was killed may be survived by
 * its session) one finds the revision changed at the end.
 */
async function inTransaction(
  { ports, tenant, view }: Build,
  work: (tx: Queryable) => Promise<void>,
): Promise<void> {
  let entered: number | undefined
  try {
    await ports.database.transaction(
      async (tx) => {
        const pid = await enterSession(tx, sessionName(tenant, view, ports.work))
        ports.entered(pid)
        entered = pid
        ports.work.pid = pid
        await work(tx)
      },
      { statementTimeoutMs: limits.viewBuildMs },
    )
  } finally {
    ports.work.pid = undefined
    if (entered !== undefined) ports.left(entered)
  }
  ports.world.reach?.('view.committed')
}

/** Entries that count, by model. */
export function positionsAt(view: StoredView, leaf: number, foreign: ForeignPositions): Positions {
  const apps = new Map(view.reads.map(({ model, app }) => [model, app]))
  return (model) => {
    const app = present(apps.get(model), `the application of ${model}`)
    return app === view.app ? leaf : present(foreign[app], `the position of ${app}`)
  }
}

/** Where everything is; GRANT_NEEDED where another application's source is gone or not granted (any more). */
async function placeWithGrants(
  { ports, tenant, view }: Build,
  positions: ForeignPositions,
): Promise<ViewPlace> {
  await checkGrants(ports, tenant, view)
  const place = placeOf(tenant.schema, view, tenant.data.catalog)
  const foreign = new Map<string, Source>()
  for (const { model, app, id } of view.reads) {
    if (app === view.app) continue
    const owner = await ports.tenantOf(app)
    const collection = owner.data.catalog.byId.get(id)
    if (collection === undefined) throw gone(model)
    const wanted = present(positions[app], `the position of ${app}`)
    // After a crash its tables may be behind for a moment.
    if ((await watermarkOf(ports.database, owner.schema)).leaf < wanted)
      throw new Fault('UNAVAILABLE', { message: `the tables of ${app} are behind` })
    foreign.set(model, { schema: owner.schema, table: collection.table })
  }
  return { ...place, resolve: (model) => foreign.get(model) ?? place.resolve(model) }
}

/** Every source of another application, also behind the views that this one is made of, is granted as it is used. */
export async function checkGrants(
  { tenantOf }: Pick<BuildPorts, 'tenantOf'>,
  tenant: Tenant,
  view: StoredView,
): Promise<void> {
  for (const { app, id, model } of view.sources) {
    const owner = app === view.app ? tenant : await tenantOf(app).catch(orGone(model))
    const source = readableOfId(owner.data.catalog, id)
    if (source === undefined) throw gone(model)
    const uses = tenant.data.catalog.views.get(view.id)?.plan?.uses
    if (owner !== tenant)
      refuseUngrantedUse(owner, source, { model, grantee: view.app, used: uses?.get(model) })
    if (source.view === undefined) continue
    assert(source.view.id !== view.id, 'a view is not made of itself')
    await checkGrantsBehind({ tenantOf }, tenant, { model, owner, view: source.view })
  }
}

/** What makes reads of the view fail makes its refreshes fail, and is told as the reason why it stands still. */
function refuseUngrantedUse(
  { data: { catalog } }: Tenant,
  source: CollectionState,
  by: { readonly model: string; readonly grantee: string; readonly used: UsedFields | undefined },
): void {
  const { model, grantee, used } = by
  if (grantOf(catalog, source, grantee) === undefined)
    throw new Fault('GRANT_NEEDED', {
      message: `the owner of ${model} does not grant its use (any more)`,
    })
  const hidden = used && hiddenUse(source.policy, used)
  if (hidden !== undefined)
    throw new Fault('FIELD_NOT_OFFERED', {
      message: `the owner of ${model} does not offer ${hidden.field ?? 'all fields'} to ${hidden.use} by (any more)`,
      details: { ...(hidden.field !== undefined && { field: hidden.field }), use: hidden.use },
    })
  if (grantedPriceOf(catalog, source, grantee) === undefined)
    throw new Fault('GRANT_NEEDED', {
      message: `the owner of ${model} has granted its use at its derive price, and lets nobody derive from it any more`,
    })
}

/**
 * The same behind a view that another one of `tenant` is made of. What another application's view is made of has no
 * name in the refusal: its owner need not have told it.
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

/** An application that is archived has nothing any more. */
function orGone(model: string) {
  return (error: unknown): never => {
    throw error instanceof Fault && error.status === 404 ? gone(model) : error
  }
}

function gone(model: string): Fault {
  return new Fault('GRANT_NEEDED', { message: `its source ${model} is gone` })
}
