import { setTimeout } from 'node:timers/promises'
import { perKind, viewsTotal } from './live-views-definitions.ts'
import { drive, makeHttpGet, makeHttpRequest, requireNoFailure, sendOnce } from './load.ts'
import { app, call, createApplication, openPlace, operatorKey, startOurs } from './place.ts'
import type { Row, RunOptions } from './report.ts'
import { interleave } from './rounds.ts'

const blockSize = 100
/** The interval between two blocks. */
const blockEveryMs = 500
const roundMs = 10_000
const otherEveryMs = 20
const otherApp = 'other'
const itemsAtFirst = 20_000
const placesTotal = 2_000
const lookMs = 5
const lagGoalMs = 1_000

/** Measures what many live views cost others, and how far the views are behind, through the whole service. */
export async function measureLiveViews({
  rounds,
  nodeOptions,
}: RunOptions): Promise<readonly Row[]> {
  const place = await openPlace()
  const ours = await startOurs(place, { nodeOptions })
  try {
    const bench = await prepare(ours.port)
    const lags: number[] = []
    const quiet: number[] = []
    const withViews = () => besides(bench, () => load(bench, 'items'))
    const without = () => besides(bench, () => load(bench, 'plain'))
    await withViews()
    await without()
    const comparison = await interleave({ rounds, ours: withViews, peer: without })
    for (let round = 0; round < rounds; round += 1) {
      quiet.push(await besides(bench, () => setTimeout(roundMs)))
      // These rounds are separate: reading views again and again costs others too.
      await besides(bench, () => load(bench, 'items', lags))
    }
    const rate = `${blockSize} records each ${blockEveryMs} ms, a fifth of them new versions`
    const lag = share(lags, 0.95)
    return [
      {
        name: `p95 of another application's stores while a collection with ${viewsTotal} live views is written (ours), and one without (peer)`,
        unit: 'ms',
        most: 1.5,
        comparison,
        note: `${rate}; single records, one each ${otherEveryMs} ms, until the tables show them; ${share(quiet, 0.5).toFixed(1)} ms where nothing else is written`,
      },
      {
        name: `from the answer to a store until one of ${viewsTotal} live views of its collection shows it, another one each time`,
        unit: 'ms',
        value: `p50 ${share(lags, 0.5).toFixed(0)} ms, p95 ${lag.toFixed(0)} ms`,
        note: `target: p95 <= ${lagGoalMs} ms, ${lag <= lagGoalMs ? 'met' : 'missed'}; ${rate}`,
      },
    ]
  } finally {
    await ours.stop()
    await place.close()
  }
}

type Bench = {
  readonly port: number
  readonly key: string
  readonly otherKey: string
  next: number
}

async function prepare(port: number): Promise<Bench> {
  const key = await createApplication(port)
  const other = { name: 'Other', app_id: otherApp }
  const otherKey = String(
    (await call(port, '/api/apps', { body: other, key: operatorKey })).app_key,
  )
  const bench = { port, key, otherKey, next: 0 }
  const create = (of: string, name: string, with_: string) =>
    call(port, `/api/apps/${of}/collections`, {
      key: with_,
      body: { name, access_policy: { read: 'public' } },
    })
  for (const name of ['items', 'plain', 'places']) await create(app, name, key)
  await create(otherApp, 'notes', otherKey)
  await call(port, `/api/apps/${app}/collections/items/indexes`, {
    key,
    body: { field_name: 'place' },
  })
  await call(port, `/api/apps/${app}/collections/places/indexes`, {
    key,
    body: { field_name: 'place' },
  })
  const places = Array.from({ length: placesTotal }, (_, at) => ({
    id: `p${at}`,
    place: `p${at}`,
    rent: at,
  }))
  await store(bench, 'places', places)
  for (let at = 0; at < itemsAtFirst; at += 1_000)
    for (const name of ['items', 'plain'])
      await store(
        bench,
        name,
        Array.from({ length: 1_000 }, (_, n) => record(at + n)),
      )
  bench.next = itemsAtFirst
  for (let at = 0; at < viewsTotal; at += 1) {
    const select = perKind[at % perKind.length]?.(at)
    await call(port, `/api/apps/${app}/views/sql`, {
      key,
      body: {
        sql: `CREATE MATERIALIZED VIEW ${app}::view_${at} AS ${select}`,
        refresh_mode: 'live',
      },
    })
  }
  return bench
}

function store({ port, key }: Bench, collection: string, data: readonly object[]) {
  return call(port, '/store?wait=true', { key, body: { root: `${app}::${collection}`, data } })
}

/** Makes a record of about 450 bytes. */
function record(at: number) {
  return {
    id: `k${at}`,
    group: `g${at % 1_000}`,
    kind: `kind ${at % 20}`,
    place: `p${(at * 7919) % placesTotal}`,
    amount: (at * 31) % 977,
    text: 'x'.repeat(330),
  }
}

/** Measures the p95 of the other application's stores while something is done. */
async function besides(bench: Bench, work: () => Promise<unknown>): Promise<number> {
  const { port, otherKey } = bench
  const root = `${otherApp}::notes`
  const requests = Array.from({ length: roundMs / otherEveryMs }, (_, at) =>
    makeHttpRequest(
      '/store?wait=true',
      JSON.stringify({ root, data: [{ id: `n${at}`, text: 'x'.repeat(400) }] }),
      { 'x-app-key': otherKey },
    ),
  )
  const driven = drive({ port, connections: 1, requests, status: 200, everyMs: otherEveryMs })
  const [others] = await Promise.all([driven, work()])
  return requireNoFailure(others).p95
}

/**
 * Writes the collection at its rate; `lags` takes the time until each block was seen in a view, the next view each
 * time.
 */
async function load(bench: Bench, collection: string, lags?: number[]): Promise<void> {
  const { port, key } = bench
  const seen: Promise<void>[] = []
  const startedAt = performance.now()
  for (let block = 0; block * blockEveryMs < roundMs; block += 1) {
    await setTimeout(startedAt + block * blockEveryMs - performance.now())
    const data = Array.from({ length: blockSize }, (_, n) =>
      record(n % 5 === 0 ? (bench.next * 13 + n) % itemsAtFirst : bench.next + n),
    )
    bench.next += blockSize
    const body = JSON.stringify({ root: `${app}::${collection}`, data })
    const reply = await sendOnce(port, makeHttpRequest('/store', body, { 'x-app-key': key }))
    if (reply.status !== 202) throw new Error(`a store: ${reply.status} ${reply.body.toString()}`)
    if (lags !== undefined) seen.push(untilSeen(port, block % viewsTotal, lags))
  }
  await Promise.all(seen)
}

/** When the store has been answered, the chain is at the block or further. */
async function untilSeen(port: number, view: number, lags: number[]): Promise<void> {
  const from = performance.now()
  const { height } = await get(port, `/api/apps/${app}/chain/checkpoint`)
  for (;;) {
    const { as_of } = await get(port, `/apps/${app}/views/view_${view}/data?limit=1`)
    if (as_of.block_height >= height) break
    await setTimeout(lookMs)
  }
  lags.push(performance.now() - from)
}

async function get(port: number, path: string) {
  const reply = await sendOnce(port, makeHttpGet(path))
  const text = reply.body.toString()
  if (reply.status !== 200) throw new Error(`GET ${path}: ${reply.status} ${text}`)
  return JSON.parse(text)
}

function share(list: readonly number[], of: number): number {
  return list.toSorted((a, b) => a - b)[Math.floor((list.length - 1) * of)] ?? 0
}
