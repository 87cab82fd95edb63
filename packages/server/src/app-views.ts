import type { ChainPlace, Progress } from './app-maintenance.ts'
import { realWorld } from './base/world.ts'
import type { Database } from './database/database.ts'
import { sql } from './database/sql.ts'
import { DataProjection } from './domains/tenancy/data-projection.ts'
import type { StoredView } from './domains/tenancy/definitions.ts'
import { placeOf, run } from './domains/tenancy/view-projection.ts'
import {
  markAt,
  type Position,
  readProgress,
  type ViewProgress,
} from './domains/tenancy/view-state.ts'
import { positionsAt } from './domains/views/build-view.ts'
import { watermarkOf } from './domains/views/view-store.ts'
import type { ViewPlace, ViewProgram } from './views/view-program.ts'

type Difference = Readonly<Record<string, unknown>>

/** An application's definitions, as its tables say them. */
type Site = { readonly app: string; readonly schema: string; readonly data: DataProjection }

/** A view with all that its definition can be recomputed by. */
type Judged = {
  readonly site: Site
  readonly view: StoredView
  readonly program: ViewProgram
  readonly place: ViewPlace
  readonly progress: ViewProgress
}

/** Recomputes every view as of the position that it states, from the tables of its sources, and compares the rows. */
export async function auditViews(
  database: Database,
  places: readonly ChainPlace[],
): Promise<Difference | undefined> {
  for (const judged of await viewsOf(database, places)) {
    const { view, progress, site } = judged
    // One that is being filled or stands still does not say that its rows are the definition.
    if (!progress.whole || (await isReversioned(database, judged))) continue
    const difference = await compareView(database, judged)
    if (difference !== undefined)
      return { chain: site.app, what: `view ${view.name}`, ...difference }
  }
  return undefined
}

/** Fills every view as of the position that its entries say: of a live one the end, of a lazy one its last refresh. */
export async function fillViews(
  database: Database,
  places: readonly ChainPlace[],
  progress: Progress,
): Promise<void> {
  const all = await viewsOf(database, places)
  for (const [done, judged] of all.entries()) {
    const { site, view, program, place } = judged
    progress(`${site.app}: filling the view ${view.name}`, done / all.length)
    const isLive = view.refresh_mode === 'live'
    const { wanted } = judged.progress
    const at: Position = isLive ? await watermarkOf(database, site.schema) : wanted
    await database.transaction(
      async (tx) => {
        for (const statement of program.fill(place, positionsAt(view, at.leaf, wanted.positions)))
          await run(tx, statement)
        const { positions } = wanted
        const status = isLive ? 'live' : 'lazy'
        const now = realWorld.now()
        await markAt(tx, site.schema, { views: [view.id], at, status, positions, now })
      },
      { statementTimeoutMs: 0 },
    )
  }
}

/** All views whose sources are there; the others stand still. */
async function viewsOf(database: Database, places: readonly ChainPlace[]): Promise<Judged[]> {
  const sites = new Map<string, Site>()
  for (const { app, schema } of places) {
    if (app === 'system') continue
    const data = new DataProjection()
    await data.load(database, schema)
    sites.set(app, { app, schema, data })
  }
  const judged: Judged[] = []
  for (const site of sites.values()) {
    const { catalog } = site.data
    const progress = await readProgress(database, site.schema)
    for (const { view, plan } of catalog.views.values()) {
      const now = progress.get(view.id)
      const place = placeIn(sites, site, view)
      if (plan !== undefined && now !== undefined && place !== undefined)
        judged.push({ site, view, program: plan.program, place, progress: now })
    }
  }
  return judged
}

function placeIn(
  sites: ReadonlyMap<string, Site>,
  { schema, data }: Site,
  view: StoredView,
): ViewPlace | undefined {
  const place = placeOf(schema, view, data.catalog)
  const tables = new Map<string, { schema: string; table: string }>()
  for (const { model, app, id } of view.reads) {
    const owner = sites.get(app)
    const collection = owner?.data.catalog.byId.get(id)
    if (owner === undefined || collection === undefined) return undefined
    tables.set(model, { schema: owner.schema, table: collection.table })
  }
  return { ...place, resolve: (model) => tables.get(model) }
}

/**
 * Whether a field of another application's collection became unique since the view counted it: then which versions
 * replaced which is not what it was, until the view is refreshed.
 */
async function isReversioned(
  database: Database,
  { view, progress, place }: Judged,
): Promise<boolean> {
  for (const { model, app, id } of view.reads) {
    const leaf = progress.positions[app]
    const source = place.resolve(model)
    if (app === view.app || leaf === undefined || source === undefined) continue
    const found = await database.query(sql`
      SELECT id FROM ${sql.id(source.schema, 'definition')} WHERE kind = 'index' AND leaf >= ${leaf}
        AND body::jsonb ->> 'unique' = 'true' AND body::jsonb ->> 'collection' = ${id} LIMIT 1`)
    if (found.length > 0) return true
  }
  return false
}

async function compareView(
  database: Database,
  { view, program, place, progress }: Judged,
): Promise<Difference | undefined> {
  const table = sql.id(place.schema, `v_${view.number}`)
  const at = positionsAt(view, progress.leaf, progress.positions)
  const { text, values } = program.recompute(place, at)
  const wanted = sql.compiled(`SELECT wanted.body FROM (${text}) AS wanted`, values)
  // A group that HAVING leaves out is there as deleted.
  const stored = sql`SELECT row.body FROM ${table} AS row WHERE NOT row.deleted`
  const [missing] = await database.query<{ body: string }>(
    sql`${wanted} EXCEPT ALL ${stored} LIMIT 1`,
  )
  const [extra] = await database.query<{ body: string }>(sql`
    WITH wanted AS (${wanted}) ${stored} EXCEPT ALL SELECT wanted.body FROM wanted LIMIT 1`)
  const [torn] = await database.query<{ body: string }>(
    sql`SELECT body FROM ${table} WHERE NOT deleted AND (data IS DISTINCT FROM body::jsonb OR superseded_by IS NOT NULL) LIMIT 1`,
  )
  if (missing === undefined && extra === undefined && torn === undefined) return undefined
  return {
    expected: missing?.body ?? torn?.body ?? 'no such row',
    found: extra?.body ?? (torn === undefined ? 'no such row' : 'another value for conditions'),
  }
}
