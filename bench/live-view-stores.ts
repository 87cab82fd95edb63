import { drive, makeHttpRequest, requireNoFailure } from './load.ts'
import { app, call, createApplication, openPlace, operatorKey, startOurs } from './place.ts'
import type { Row, RunOptions } from './report.ts'
import { interleave } from './rounds.ts'

const blockSize = 100
/** The number of blocks of one round. */
const blocks = 100
const recordsAtFirst = 20_000
const groups = 1_000
const otherApp = 'other'

/**
 * Measures what a live view adds to a store, from the request until the tables show its records, through the whole
 * service.
 */
export async function measureLiveStores({
  rounds,
  nodeOptions,
}: RunOptions): Promise<readonly Row[]> {
  const place = await openPlace()
  const ours = await startOurs(place, { nodeOptions })
  try {
    const viewed = await prepare(ours.port, app, await createApplication(ours.port))
    const other = { name: 'Other', app_id: otherApp }
    const reply = await call(ours.port, '/api/apps', { body: other, key: operatorKey })
    const plain = await prepare(ours.port, otherApp, String(reply.app_key))
    const select = `SELECT "group", count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM ${app}::items GROUP BY "group"`
    await call(ours.port, `/api/apps/${app}/views/sql`, {
      key: viewed.key,
      body: { sql: `CREATE MATERIALIZED VIEW ${app}::groups AS ${select}`, refresh_mode: 'live' },
    })
    await storedMs(viewed, blocks)
    await storedMs(plain, blocks)
    return [
      {
        name: `a store of ${blockSize} records, until the tables show them, into a collection with a live GROUP BY view (ours) and without (peer), 1 connection`,
        unit: 'ms',
        comparison: await interleave({
          rounds,
          ours: () => storedMs(viewed, blocks),
          peer: () => storedMs(plain, blocks),
        }),
        note: `the whole service on both sides; ${groups.toLocaleString('en-US')} groups with count, sum and mean, each record of a block in another one`,
      },
    ]
  } finally {
    await ours.stop()
    await place.close()
  }
}

type Target = { readonly port: number; readonly of: string; readonly key: string; next: number }

async function prepare(port: number, of: string, key: string): Promise<Target> {
  await call(port, `/api/apps/${of}/collections`, { key, body: { name: 'items' } })
  const target = { port, of, key, next: 0 }
  await storedMs(target, recordsAtFirst / blockSize)
  return target
}

/** Returns the mean time of a store in milliseconds, over several stores in sequence. */
async function storedMs(target: Target, count: number): Promise<number> {
  const { port, of, key } = target
  const requests = Array.from({ length: count }, () => {
    const data = Array.from({ length: blockSize }, (_, at) => record(target.next + at))
    target.next += blockSize
    const body = JSON.stringify({ root: `${of}::items`, data })
    return makeHttpRequest('/store?wait=true', body, { 'x-app-key': key })
  })
  const { seconds } = requireNoFailure(await drive({ port, connections: 1, requests, status: 200 }))
  return (seconds * 1000) / count
}

/** Makes a record of about 450 bytes. */
function record(at: number) {
  return {
    id: `k${at}`,
    group: `g${at % groups}`,
    place: `p${at % 2_000}`,
    amount: at % 977,
    text: 'x'.repeat(360),
  }
}
