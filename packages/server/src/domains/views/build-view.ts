import { limits } from '@tollbase/contract/limits'
import { assert, present } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Database, Queryable } from '../../database/database.ts'
import type { Source } from '../../query/join.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import type { Positions, ViewPlace } from '../../views/view-program.ts'
import { readableOfId } from '../tenancy/catalog.ts'
import type { ForeignPositions, StoredView } from '../tenancy/definitions.ts'
import { grantOf } from '../tenancy/grants.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import type { ViewPlan } from '../tenancy/view-plan.ts'
import { placeOf, run } from '../tenancy/view-projection.ts'
import { markAt, type Position, readProgress, type ViewProgress } from '../tenancy/view-state.ts'
import { enterSession, lockedWatermark, watermarkOf } from './view-store.ts'

export type BuildPorts = {
  readonly database: Database
  readonly world: World
  readonly tenantOf: (app: string) => Promise<Tenant>
  /** A session is at work, or would be: throws where it is over. */
  readonly entered: (pid: number) => void
  readonly left: (pid: number) => void
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
  const to = positionsAt(view, wanted.leaf, wanted.positions)
  const isForeign = view.reads.some(({ app }) => app !== view.app)
  const byChange = whole && plan.program.obstacle === undefined && !isForeign
  const from = positionsAt(view, progress.leaf, progress.positions)
  await inTransaction(build, async (tx) => {
    const { program } = plan
    await runAll(tx, byChange ? program.advance(place, from, to) : program.fill(place, to))
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
  const { ports, tenant, view, plan } = build
  const { program } = plan
  let { revision } = progress
  const place = placeOf(tenant.schema, view, tenant.data.catalog)
  let at: Position = progress
  if (!progress.whole) {
    const to = await watermarkOf(ports.database, tenant.schema)
    await inTransaction(build, async (tx) => {
      await runAll(
        tx,
        program.fill(place, () => to.leaf),
      )
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
    const from = at
    await inTransaction(build, async (tx) => {
      await runAll(
        tx,
        program.advance(
          place,
          () => from.leaf,
          () => to.leaf,
        ),
      )
      await settle(tx, build, { at: to, status: 'building', revision })
    })
    at = to
    revision += 1
  }
  await inTransaction(build, async (tx) => {
    const to = await lockedWatermark(tx, tenant.schema)
    await runAll(
      tx,
      program.advance(
        place,
        () => at.leaf,
        () => to.leaf,
      ),
    )
    await settle(tx, build, { at: to, status: 'live', revision })
  })
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
  const mark = { views: [view.id], at, status, positions, revision, now: ports.world.now() }
  if (!(await markAt(tx, tenant.schema, mark))) throw new Superseded()
  ports.world.reach?.(status === 'live' ? 'view.beforeLive' : 'view.beforeFilled')
}

/**
 * Nobody works on a view for longer than he may. Of two who do at once (a process that was killed may be survived by
 * its session) one finds the revision changed at the end.
 */
async function inTransaction(
  { ports }: Build,
  work: (tx: Queryable) => Promise<void>,
): Promise<void> {
  let entered: number | undefined
  try {
    await ports.database.transaction(
      async (tx) => {
        const pid = await enterSession(tx)
        ports.entered(pid)
        entered = pid
        await work(tx)
      },
      { statementTimeoutMs: limits.viewBuildMs },
    )
  } finally {
    if (entered !== undefined) ports.left(entered)
  }
  ports.world.reach?.('view.committed')
}

async function runAll(tx: Queryable, statements: readonly CompiledStatement[]): Promise<void> {
  for (const statement of statements) await run(tx, statement)
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

/** Every source of another application, also behind the views that this one is made of, is granted. */
export async function checkGrants(
  { tenantOf }: Pick<BuildPorts, 'tenantOf'>,
  tenant: Tenant,
  view: StoredView,
): Promise<void> {
  for (const { app, id, model } of view.sources) {
    const owner = app === view.app ? tenant : await tenantOf(app).catch(orGone(model))
    const source = readableOfId(owner.data.catalog, id)
    if (source === undefined) throw gone(model)
    if (owner !== tenant && grantOf(owner.data.catalog, source, view.app) === undefined)
      throw new Fault('GRANT_NEEDED', {
        message: `the owner of ${model} does not grant its use (any more)`,
      })
    if (source.view === undefined) continue
    assert(source.view.id !== view.id, 'a view is not made of itself')
    await checkGrantsBehind({ tenantOf }, tenant, { model, owner, view: source.view })
  }
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
    const isTold = owner === tenant || !(error instanceof Fault) || error.code !== 'GRANT_NEEDED'
    if (isTold) throw error
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
