import { sql } from '../../packages/server/src/database/sql.ts'
import { type Data, makeData } from '../support/data.ts'
import type { TestReply, TestService } from '../support/service.ts'
import { Mismatch } from './mismatch.ts'
import type { Definition } from './print-query.ts'
import { collections, printBody, type StoredRecord } from './records.ts'
import { findWrongRows, makeLiveRecords, readViewsNow, type ViewNow } from './service-check.ts'

/** A history of one application; after each step all of its views are checked. */
export type ServiceCase<Of = Definition> = { readonly steps: readonly ServiceStep<Of>[] }

export type Mode = 'live' | 'lazy'

export type ServiceStep<Of> =
  | { readonly do: 'write'; readonly records: readonly StoredRecord[] }
  /** A new view, or another definition of one. */
  | { readonly do: 'define'; readonly view: string; readonly mode: Mode; readonly query: Of }
  /** Drops or refreshes a view, together with the views that read it. */
  | { readonly do: 'drop' | 'refresh'; readonly view: string }
  | { readonly do: 'unique'; readonly collection: string; readonly field: string }
  | { readonly do: 'restart' }
  | { readonly do: 'together'; readonly steps: readonly ServiceStep<Of>[] }

type View = { readonly definition: Definition; readonly mode: Mode }

type Run = {
  readonly service: TestService
  readonly app: Data
  /** The schema with the live records. */
  readonly live: string
  /** By name. */
  readonly views: Map<string, View>
}

let applications = 0

/**
 * Runs a history through the whole service. After each step every view equals what plain SQL over the collections'
 * tables gives at the position that the view states. Throws Mismatch where one does not.
 */
export async function runServiceCase(service: TestService, { steps }: ServiceCase): Promise<void> {
  applications += 1
  const app = makeData(service, await service.createApp(`views-${applications}`))
  const run: Run = { service, app, live: `live_${applications}`, views: new Map() }
  try {
    for (const name of collections) expectStatus(await app.create({ name }), 201)
    const { schema, data } = await service.running.service.tenants.load(app.appId)
    const tables = collections.map((name) => ({
      name,
      table: data.catalog.byName.get(name)?.table ?? '',
    }))
    await makeLiveRecords(service.database, { schema, live: run.live, tables })
    for (const [at, step] of steps.entries()) {
      await follow(run, step)
      await check(run, at)
    }
  } finally {
    // A rebuild drops the tables that the schema shows.
    await service.database.execute(sql`DROP SCHEMA IF EXISTS ${sql.id(run.live)} CASCADE`)
  }
}

/** Steps of views that are not there, in a case that was made simpler, do nothing. */
async function follow(run: Run, step: ServiceStep<Definition>): Promise<void> {
  const { app, service, views } = run
  switch (step.do) {
    case 'write':
      return write(run, step.records)
    case 'define':
      return define(run, step.view, { definition: step.query, mode: step.mode })
    case 'drop': {
      if (!views.has(step.view)) return
      expectStatus(await app.call('DELETE', `/views/${step.view}`, { cascade: true }), 200)
      for (const name of [step.view, ...listReaders(run, step.view)]) views.delete(name)
      return
    }
    case 'refresh':
      return views.get(step.view)?.mode === 'lazy' ? refresh(run, step.view) : undefined
    case 'unique': {
      const { collection, field } = step
      const request = {
        collection,
        field_name: field,
        index_type: 'btree',
        unique_constraint: true,
      }
      const made = await app.call('POST', '/indexes', request)
      if (made.status !== 200) expectStatus(made, 201)
      return
    }
    case 'restart':
      return service.restart()
    case 'together':
      await Promise.all(step.steps.map((each) => follow(run, each)))
  }
}

async function write({ app, service }: Run, records: readonly StoredRecord[]): Promise<void> {
  for (const collection of collections) {
    const own = records.filter((each) => each.in === collection)
    if (own.length === 0) continue
    const texts = own.map(({ key, fields }) =>
      printBody({ id: JSON.stringify(key), ...(fields ?? { deleted: 'true' }) }),
    )
    const reply = await service.request('POST', '/store?wait=true', {
      raw: `{"root":"${app.appId}::${collection}","data":[${texts.join(',')}]}`,
      headers: app.headers,
    })
    expectStatus(reply, 200)
  }
}

async function define({ app, views }: Run, name: string, view: View): Promise<void> {
  const text = view.definition.ours.replaceAll('app::', `"${app.appId}"::`)
  const statement = `CREATE OR REPLACE MATERIALIZED VIEW "${app.appId}"::${name} AS ${text}`
  const request = { sql: statement, refresh_mode: view.mode }
  expectStatus(await app.call('POST', '/views/sql', request), 201)
  views.set(name, view)
}

/** Lists the views that read a view, directly or through others. */
function listReaders(run: Run, name: string): readonly string[] {
  const readers = [...run.views].filter(([, { definition }]) =>
    definition.ours.split(/[ ()]/).includes(`app::${name}`),
  )
  return readers.flatMap(([reader]) => [reader, ...listReaders(run, reader)])
}

async function refresh({ app }: Run, name: string): Promise<void> {
  const reply = await app.call('POST', `/views/${name}/refresh`, {})
  if (reply.status !== 202) expectStatus(reply, 200)
}

/**
 * Checks all views; at times one of them as a reader gets it too. Live views that nobody reads may take in several
 * steps at once, so at times they are checked where they are.
 */
async function check(run: Run, at: number): Promise<void> {
  const { service, app, views } = run
  if (views.size === 0) return
  const isWaiting = at % 4 === 1
  const tenant = await service.running.service.tenants.load(app.appId)
  // A read refreshes the views; its result is compared below, when nothing moves any more.
  if (at % 12 === 10) for (const name of views.keys()) await app.list(name, { limit: 1 })
  else if (!isWaiting) await tenant.chain.whenCaughtUp()
  const all = await settled(run)
  const asked = [...views.keys()][at % Math.max(1, views.size)]
  for (const [name, view] of views) {
    const state = tenant.data.catalog.viewsByName.get(name)
    const now = all.get(state?.id ?? '')
    if (state === undefined || now === undefined)
      throw new Mismatch('no view', `${name} is not there`)
    const about = `after step ${at + 1} ${view.mode} ${name} at ${now.leaf}, ${view.definition.ours}`
    if (!isWaiting) expectPlace(about, view, now)
    const listed = name === asked && at % 4 === 3 ? await list(run, name, now) : undefined
    const wrong = await wrongAt(run, { state, view, now, listed })
    if (wrong !== undefined) throw new Mismatch('not what plain SQL says', `${about}\n${wrong}`)
  }
}

type Looked = {
  readonly state: { readonly id: string; readonly table: string }
  readonly view: View
  readonly now: ViewNow
  readonly listed: string | undefined
}

/** Finds what is wrong with a view at its position, which the view may leave meanwhile. */
async function wrongAt(
  run: Run,
  { state, view, now, listed }: Looked,
): Promise<string | undefined> {
  const { service, app, live } = run
  const { schema } = await service.running.service.tenants.load(app.appId)
  const wrong = await findWrongRows(service.database, {
    schema,
    table: state.table,
    plain: view.definition.plain.replaceAll('live.', `${live}.`),
    leaf: now.leaf,
    listed,
  })
  const later = wrong && (await settled(run)).get(state.id)
  return later && later.leaf !== now.leaf
    ? wrongAt(run, { state, view, now: later, listed })
    : wrong
}

/** Returns what a reader of all rows gets; undefined where they may be too many. */
async function list({ app }: Run, name: string, now: ViewNow): Promise<string | undefined> {
  const listed = await app.list(name, { limit: 1_000 })
  expectStatus(listed, 200)
  const { block_height: height, sequence } = listed.body.as_of
  if (height !== now.height || sequence !== now.sequence) {
    const stated = `${name} says it is at ${height}:${sequence}, not at ${now.height}:${now.sequence}`
    throw new Mismatch('another position', stated)
  }
  return listed.body.records.length === 1_000 ? undefined : listed.text
}

function expectPlace(about: string, { mode }: View, now: ViewNow): void {
  const wanted = mode === 'live' ? now.watermark : now.wantedLeaf
  if (now.status === mode && now.leaf === wanted) return
  throw new Mismatch(`a ${mode} view is ${now.status}`, `${about}, of ${wanted}: ${now.reason}`)
}

const settledMs = 60_000

/** Waits until nothing is left to do for the views; a view that became stale on a slow machine is repaired. */
async function settled(run: Run): Promise<ReadonlyMap<string, ViewNow>> {
  const { service, app, views } = run
  const until = Date.now() + settledMs
  for (;;) {
    const tenant = await service.running.service.tenants.load(app.appId)
    const all = await readViewsNow(service.database, tenant.schema)
    for (const [name] of views) {
      const now = all.get(tenant.data.catalog.viewsByName.get(name)?.id ?? '')
      if (now?.status === 'stale' && now.reason?.includes('took longer')) await refresh(run, name)
    }
    const isBusy = [...all.values()].some(
      ({ status, leaf, wantedLeaf }) =>
        status === 'building' || (status === 'lazy' && leaf < wantedLeaf),
    )
    if (!isBusy && tenant.data.catalog.views.size === views.size) return all
    if (Date.now() > until) throw new Mismatch('no rest', 'the views do not settle')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function expectStatus(reply: TestReply, status: number): void {
  if (reply.status !== status) throw new Mismatch(`status ${reply.status}`, reply.text)
}
