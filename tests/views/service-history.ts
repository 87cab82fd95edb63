import { sql } from '../../packages/server/src/database/sql.ts'
import { type Data, dataOf } from '../support/data.ts'
import type { TestReply, TestService } from '../support/service.ts'
import { type Chance, chanceOf } from './engine-chance.ts'
import {
  type Definition,
  type Draw,
  definition,
  topDefinition,
  topRecords,
  wholeRecords,
} from './engine-definitions.ts'
import { block, collections } from './engine-history.ts'
import type { Write } from './engine-place.ts'
import { makePlainTables, type ViewNow, viewsNow, wrongRows } from './service-check.ts'

type HistorySize = { readonly views: number; readonly steps: number }

export const historySize: HistorySize = { views: 8, steps: 14 }

type Mode = 'live' | 'lazy'
type View = { readonly definition: Definition; readonly mode: Mode }

type History = {
  readonly service: TestService
  readonly app: Data
  readonly chance: Chance
  readonly draw: Draw
  /** By name. */
  readonly views: Map<string, View>
  readonly trace: string[]
  next: number
  isUnique: boolean
}

/**
 * Random definitions and a random history through the whole service. After each step every view is what plain SQL
 * over the collections' tables says of the position that the view states. Throws with the steps where one is not.
 */
export async function followHistory(
  service: TestService,
  seed: number,
  size: HistorySize,
): Promise<void> {
  const app = dataOf(service, await service.createApp(`views-${seed}`))
  const chance = chanceOf(seed)
  const plain = `plain_${seed}`
  const history: History = {
    service,
    app,
    chance,
    draw: { chance, schema: plain, next: 0 },
    views: new Map(),
    trace: [],
    next: 0,
    isUnique: false,
  }
  try {
    for (const name of collections) expectStatus(await app.create({ name }), 201)
    const { schema, data } = await service.running.service.tenancy.tenant(app.appId)
    const tables = collections.map((name) => data.catalog.byName.get(name)?.table ?? '')
    await makePlainTables(service.database, { schema, plain, tables })
    await write(history, block(chance))
    while (history.views.size < size.views) await create(history)
    await check(history)
    for (let at = 0; at < size.steps; at += 1) {
      await step(history)
      await check(history)
    }
  } catch (error) {
    const told = `views, seed ${seed}:\n${history.trace.join('\n')}\n${error instanceof Error ? error.message : error}`
    throw new Error(told, { cause: error })
  } finally {
    // A rebuild drops the tables that the schema shows.
    await service.database.execute(sql`DROP SCHEMA IF EXISTS ${sql.id(plain)} CASCADE`)
  }
}

async function step(history: History): Promise<void> {
  const { chance, service, views, app } = history
  const kind = chance.below(100)
  if (kind < 60) await write(history, block(chance))
  else if (kind < 78) await burst(history)
  else if (kind < 86) await replace(history)
  else if (kind < 91) {
    const name = chance.one([...views.keys()])
    history.trace.push(`drop ${name}`)
    expectStatus(await app.call('DELETE', `/views/${name}`), 200)
    views.delete(name)
    await create(history)
  } else if (kind < 95 && !history.isUnique) {
    history.isUnique = true
    history.trace.push('c.h becomes unique')
    const wish = { collection: 'c', field_name: 'h', index_type: 'btree', unique_constraint: true }
    const made = await app.call('POST', '/indexes', wish)
    if (made.status !== 200) expectStatus(made, 201)
  } else if (kind >= 97) {
    history.trace.push('restart')
    await service.restart()
  }
  for (const name of chance.some(lazyOnes(history), 0, 2)) await refresh(history, name)
}

/** Writes, refreshes and a new view at the same time. */
async function burst(history: History): Promise<void> {
  const { chance } = history
  const blocks = Array.from({ length: 2 + chance.below(4) }, () => block(chance))
  const names = chance.some(lazyOnes(history), 0, 2)
  const isCreating = chance.happens(50)
  history.trace.push('at the same time:')
  await Promise.all([
    ...(isCreating ? [create(history)] : []),
    ...blocks.map((writes) => write(history, writes)),
    // Two of one view now and then.
    ...[...names, ...names.slice(0, 1)].map((name) => refresh(history, name)),
  ])
}

async function write({ app, service, trace }: History, writes: readonly Write[]): Promise<void> {
  for (const collection of collections) {
    const own = writes.filter((each) => each.collection === collection)
    if (own.length === 0) continue
    const records = own.map(({ key, body = '{"deleted":true}' }) => {
      // The service takes no larger ones.
      const rest = body.slice(1).replaceAll('1e401', '1e300')
      return `{"id":"${key}"${rest === '}' ? '' : ','}${rest}`
    })
    trace.push(`${collection} <- ${records.join(' ')}`)
    const reply = await service.request('POST', '/store?wait=true', {
      raw: `{"root":"${app.appId}::${collection}","data":[${records.join(',')}]}`,
      headers: app.headers,
    })
    expectStatus(reply, 200)
  }
}

async function create(history: History): Promise<void> {
  const { chance, draw } = history
  history.next += 1
  const mode = chance.one(['live', 'lazy'] as const)
  await define(history, `v${history.next}`, { definition: drawn(draw, mode), mode })
}

async function replace(history: History): Promise<void> {
  const { chance, draw, views } = history
  const mode = chance.one(['live', 'lazy'] as const)
  await define(history, chance.one([...views.keys()]), { definition: drawn(draw, mode), mode })
}

async function define(history: History, name: string, view: View): Promise<void> {
  const { app, views, trace } = history
  const text = view.definition.ours.replaceAll('app::', `"${app.appId}"::`)
  trace.push(`${view.mode} ${name} = ${text}`)
  const statement = `CREATE OR REPLACE MATERIALIZED VIEW "${app.appId}"::${name} AS ${text}`
  const made = await app.call('POST', '/views/sql', { sql: statement, refresh_mode: view.mode })
  expectStatus(made, 201)
  views.set(name, view)
}

function drawn(draw: Draw, mode: Mode): Definition {
  const { chance } = draw
  if (mode === 'lazy' && chance.happens(25)) return counted(draw)
  return chance.one([definition, definition, definition, topDefinition, topRecords, wholeRecords])(
    draw,
  )
}

/** With a window, which cannot be kept up by changes. */
function counted(draw: Draw): Definition {
  const inner = definition(draw)
  const of = (text: string) => `SELECT w.c0, count(*) OVER (PARTITION BY w.c0) AS c1 FROM (${text})`
  return {
    columns: [...inner.columns.slice(0, 1), { name: 'c1', type: 'number' }],
    ours: `${of(inner.ours)} w`,
    plain: `${of(inner.plain)} AS w`,
  }
}

function lazyOnes({ views }: History): string[] {
  return [...views].filter(([, { mode }]) => mode === 'lazy').map(([name]) => name)
}

async function refresh({ app, trace }: History, name: string): Promise<void> {
  trace.push(`refresh ${name}`)
  const reply = await app.call('POST', `/views/${name}/refresh`, {})
  if (reply.status !== 202) expectStatus(reply, 200)
}

async function check(history: History): Promise<void> {
  const { service, app, views, chance } = history
  const tenant = await service.running.service.tenancy.tenant(app.appId)
  const all = await settled(history)
  const asked = chance.one([...views.keys()])
  for (const [name, view] of views) {
    const state = tenant.data.catalog.viewsByName.get(name)
    const now = all.get(state?.id ?? '')
    if (state === undefined || now === undefined) throw new Error(`${name} is not there`)
    expectPlace(name, view, now)
    const listed = name === asked ? await app.list(name, { limit: 1_000 }) : undefined
    if (listed !== undefined) {
      expectStatus(listed, 200)
      const { block_height: height, sequence } = listed.body.as_of
      if (height !== now.height || sequence !== now.sequence)
        throw new Error(
          `${name} says it is at ${height}:${sequence}, not at ${now.height}:${now.sequence}`,
        )
    }
    const wrong = await wrongRows(service.database, {
      schema: tenant.schema,
      table: state.table,
      definition: view.definition,
      leaf: now.leaf,
      listed:
        listed === undefined || listed.body.records.length === 1_000 ? undefined : listed.text,
    })
    if (wrong !== undefined) throw new Error(`${view.mode} ${name} at ${now.leaf}: ${wrong}`)
  }
}

function expectPlace(name: string, { mode }: View, now: ViewNow): void {
  const wanted = mode === 'live' ? now.watermark : now.wantedLeaf
  if (now.status === mode && now.leaf === wanted) return
  throw new Error(`${mode} ${name} is ${now.status} at ${now.leaf} of ${wanted}: ${now.reason}`)
}

const settledMs = 60_000

/** The views when nothing is left to do for them; what a slow machine made stale is repaired. */
async function settled(history: History): Promise<ReadonlyMap<string, ViewNow>> {
  const { service, app, views } = history
  const until = Date.now() + settledMs
  for (;;) {
    const tenant = await service.running.service.tenancy.tenant(app.appId)
    const all = await viewsNow(service.database, tenant.schema)
    for (const [name] of views) {
      const now = all.get(tenant.data.catalog.viewsByName.get(name)?.id ?? '')
      if (now?.status === 'stale' && now.reason?.includes('took longer'))
        await refresh(history, name)
    }
    const isBusy = [...all.values()].some(
      ({ status, leaf, wantedLeaf }) =>
        status === 'building' || (status === 'lazy' && leaf < wantedLeaf),
    )
    if (!isBusy && tenant.data.catalog.views.size === views.size) return all
    if (Date.now() > until) throw new Error('the views do not settle')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function expectStatus(reply: TestReply, status: number): void {
  if (reply.status !== status) throw new Error(`${reply.status}: ${reply.text}`)
}
