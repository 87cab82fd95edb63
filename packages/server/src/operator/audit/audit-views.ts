import { realWorld } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import type { StoredView } from '../../model/definitions.ts'
import { DataProjection } from '../../projections/data-projection.ts'
import { hasExpiredTable, listExpiries } from '../../projections/expiry.ts'
import {
  markAt,
  noteMeanings,
  type Position,
  readProgress,
  type ViewProgress,
} from '../../projections/view-state.ts'
import { makeViewPlace, runViewStatement } from '../../projections/view-tables.ts'
import { readErased } from '../../services/retention/erasure-store.ts'
import { makePositionsAt } from '../../services/views/build-view.ts'
import { readWatermark } from '../../services/views/view-store.ts'
import type { ViewPlace, ViewProgram } from '../../views/view-program.ts'
import { getRowsName } from '../../views/view-rows.ts'
import type { ChainPlace, Progress } from '../maintenance.ts'
import { compareRows } from './audit-tables.ts'

type Difference = Readonly<Record<string, unknown>>

/** An application's definitions, as its tables hold them. */
type Site = { readonly app: string; readonly schema: string; readonly data: DataProjection }

/** A view with everything that recomputing its definition needs. */
type AuditedView = {
  readonly site: Site
  readonly view: StoredView
  readonly program: ViewProgram
  readonly place: ViewPlace
  readonly progress: ViewProgress
}

/**
 * Recomputes every view as of the position that it states, from the tables of its sources, and compares the rows;
 * then fills its tables anew in a scratch schema, and compares every column. A view that is not filled claims
 * nothing that could be compared, and is reported apart.
 */
export async function auditViews(
  database: Database,
  places: readonly ChainPlace[],
): Promise<{
  readonly difference?: Difference
  readonly unfinished: readonly Difference[]
}> {
  const unfinished: Difference[] = []
  for (const audited of await loadViews(database, places)) {
    const { view, progress, site } = audited
    const { status, reason } = progress
    const named = { chain: site.app, what: `view ${view.name}` }
    if (status === 'building' && !progress.whole) {
      unfinished.push({ ...named, expected: 'rows of its definition', found: 'not filled yet' })
      continue
    }
    if (await isReversioned(database, audited)) continue
    if (await isForgetting(database, audited)) continue
    const difference =
      (await comparePosition(database, audited)) ??
      (await compareViewRows(database, audited)) ??
      (await compareKeptTables(database, audited))
    if (difference === undefined && status !== 'stale') continue
    if (progress.whole && difference !== undefined)
      return { difference: { ...named, ...difference }, unfinished }
    // A stale view does not claim that its rows match the definition, and is not kept up.
    const left = difference ?? { expected: 'a view that is kept up', found: 'a stale one' }
    unfinished.push({ ...named, ...left, status, reason })
  }
  return { unfinished }
}

/**
 * Fills every view as of the position that its entries say: a live view at the end of the chain, a lazy one at its
 * last refresh.
 */
export async function fillViews(
  database: Database,
  places: readonly ChainPlace[],
  progress: Progress,
): Promise<void> {
  const all = await loadViews(database, places)
  for (const [done, audited] of all.entries()) {
    const { site, view, program, place } = audited
    progress(`${site.app}: filling the view ${view.name}`, done / all.length)
    const isLive = view.refresh_mode === 'live'
    const { wanted } = audited.progress
    const at: Position = isLive ? await readWatermark(database, site.schema) : wanted
    await database.transaction(
      async (tx) => {
        await noteMeanings(tx, site.schema, view)
        for (const statement of program.fill(
          place,
          makePositionsAt(view, at.leaf, wanted.positions),
        ))
          await runViewStatement(tx, statement)
        const { positions } = wanted
        const status = isLive ? 'live' : 'lazy'
        const now = realWorld.now()
        await markAt(tx, site.schema, { views: [view.id], at, status, positions, now })
      },
      { statementTimeoutMs: 0 },
    )
  }
}

/** Loads all views whose sources exist; the others are stale. */
async function loadViews(
  database: Database,
  places: readonly ChainPlace[],
): Promise<AuditedView[]> {
  const sites = new Map<string, Site>()
  for (const { app, schema } of places) {
    if (app === 'system') continue
    const data = new DataProjection()
    await data.load(database, schema)
    sites.set(app, { app, schema, data })
  }
  const audited: AuditedView[] = []
  for (const site of sites.values()) {
    const { catalog } = site.data
    const progress = await readProgress(database, site.schema)
    for (const { view, plan } of catalog.views.values()) {
      const now = progress.get(view.id)
      const place = findPlace(sites, site, view)
      if (plan !== undefined && now !== undefined && place !== undefined)
        audited.push({ site, view, program: plan.program, place, progress: now })
    }
  }
  return audited
}

function findPlace(
  sites: ReadonlyMap<string, Site>,
  { schema, data }: Site,
  view: StoredView,
): ViewPlace | undefined {
  const place = makeViewPlace(schema, view, data.catalog)
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
 * Returns whether a field of another application's collection became unique since the view counted it: then the
 * versions that replaced others are not the same any more, until the view is refreshed.
 */
async function isReversioned(
  database: Database,
  { view, progress, place }: AuditedView,
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

/**
 * Returns whether records of another application's collection have expired, and a crash came before the view was told
 * to forget them: the service goes on with that when it is started.
 */
async function isForgetting(database: Database, { view, place }: AuditedView): Promise<boolean> {
  for (const { model, app, id } of view.reads) {
    const source = place.resolve(model)
    if (app === view.app || source === undefined) continue
    const { schema } = source
    if (!(await hasExpiredTable(database, schema))) continue
    const left = await listExpiries(database, schema, await readErased(database, schema))
    if (left.some(({ collection }) => collection === id)) return true
  }
  return false
}

/**
 * Checks that the position is that of an entry at or after the view's definition, and that the tables have come
 * that far.
 */
async function comparePosition(
  database: Database,
  { site: { schema }, view, progress }: AuditedView,
): Promise<Difference | undefined> {
  const { leaf, height, sequence, wanted } = progress
  const of = (position: Position) => `${position.leaf} (${position.height}.${position.sequence})`
  const [entry] = await database.query<{ leaf: bigint; defined: bigint; applied: bigint }>(sql`
    SELECT block.first_leaf + ${sequence}::int8 + 1 AS leaf, definition.leaf + 1 AS defined, watermark.leaf AS applied
    FROM ${sql.id(schema, 'block')} AS block, ${sql.id(schema, 'definition')} AS definition, ${sql.id(schema, 'watermark')} AS watermark
    WHERE block.height = ${height} AND definition.kind = 'view' AND definition.id = ${view.id}`)
  if (!progress.whole) return undefined
  const { status } = progress
  const kept = view.refresh_mode === 'live' ? 'live' : 'lazy'
  if (status !== 'building' && status !== kept)
    return { field: 'status', expected: `${kept} or building`, found: status }
  const isThere =
    Number(entry?.leaf) === leaf && leaf >= Number(entry?.defined) && leaf <= Number(entry?.applied)
  if (!isThere)
    return {
      field: 'leaf',
      expected: `${entry?.defined ?? 1} to ${entry?.applied ?? 'the last'}, with the place of that entry`,
      found: of(progress),
    }
  const isWanted = view.refresh_mode !== 'live' && leaf === wanted.leaf
  const [found, expected] = [progress.positions, wanted.positions].map((each) =>
    JSON.stringify(each),
  )
  return isWanted && found !== expected ? { field: 'positions', expected, found } : undefined
}

const scratch = 'audit_views'

/** Fills empty copies of the view's tables, and compares them with the tables that changes have kept up. */
async function compareKeptTables(
  database: Database,
  { view, program, place, progress }: AuditedView,
): Promise<Difference | undefined> {
  const beside = { ...place, schema: scratch }
  const at = makePositionsAt(view, progress.leaf, progress.positions)
  try {
    await database.transaction(
      async (tx) => {
        await tx.execute(sql`DROP SCHEMA IF EXISTS ${sql.id(scratch)} CASCADE`)
        await tx.execute(sql`CREATE SCHEMA ${sql.id(scratch)}`)
        for (const statement of program.tables(beside)) await runViewStatement(tx, statement)
        for (const statement of program.fill(beside, at)) await runViewStatement(tx, statement)
      },
      { statementTimeoutMs: 0 },
    )
    for (const table of program.keptTableNames(view.number)) {
      const columns = await readColumns(database, table)
      const schemas = { stored: place.schema, recomputed: scratch }
      // Groups are identified by their keys.
      const key = columns.filter((name) => /^(hash|k\d+)$/.test(name))
      const difference = await compareRows(database, { table, columns, key, ...schemas })
      if (difference !== undefined) {
        const { what, ...rest } = difference
        return { table: what, ...rest }
      }
    }
    return undefined
  } finally {
    await database.execute(sql`DROP SCHEMA IF EXISTS ${sql.id(scratch)} CASCADE`)
  }
}

/** Lists all columns but those that number the rows in their order of arrival. */
async function readColumns(database: Database, table: string): Promise<readonly string[]> {
  const rows = await database.query<{ name: string }>(sql`
    SELECT attname::text AS name FROM pg_catalog.pg_attribute
    WHERE attrelid = to_regclass(${`${scratch}.${table}`}) AND attnum > 0 AND NOT attisdropped AND attidentity = ''
    ORDER BY attnum`)
  return rows.map(({ name }) => name)
}

async function compareViewRows(
  database: Database,
  { view, program, place, progress }: AuditedView,
): Promise<Difference | undefined> {
  const table = sql.id(place.schema, getRowsName(view.number))
  const at = makePositionsAt(view, progress.leaf, progress.positions)
  const { text, values } = program.recompute(place, at)
  const wanted = sql.compiled(`SELECT wanted.body FROM (${text}) AS wanted`, values)
  // A group that HAVING leaves out is stored as deleted.
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
