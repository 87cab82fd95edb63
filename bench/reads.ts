import { limits } from '@tollbase/contract/limits'
import { startService } from '@tollbase/server/app'
import { realWorld } from '@tollbase/server/base/world'
import { readConfig } from '@tollbase/server/config/config'
import { sql } from '@tollbase/server/database/sql'
import { compileList } from '@tollbase/server/query/compile-list'
import { parseList } from '@tollbase/server/query/list-query'
import { getCity, makeItem } from './documents.ts'
import { drive, makeHttpRequest, requireNoFailure, sendOnce } from './load.ts'
import { valuePlace } from './peers/bare-config.ts'
import {
  app,
  call,
  configFile,
  createApplication,
  createCollection,
  openPlace,
  operatorKey,
  type Place,
  startOurs,
  startPeer,
} from './place.ts'
import { findBestPool } from './pools.ts'
import type { Benchmark, Row } from './report.ts'
import { interleave } from './rounds.ts'

export const recordsTotal = 100_000
export const collection = 'items'
const batchSize = 1000
const connections = 16
const requestsPerRound = 12_000
const poolSizes = [4, 8, 16]

type Read = {
  readonly name: string
  readonly field: 'city' | 'id'
  readonly limit: number
  readonly makeValue: (at: number) => string
}

const cases: readonly Read[] = [
  {
    name: 'read by /list: the 10 records of one indexed value',
    field: 'city',
    limit: 20,
    makeValue: (at) => getCity(at, recordsTotal),
  },
  {
    name: 'read by /list: one record by its key',
    field: 'id',
    limit: 1,
    makeValue: (at) => makeItem(at, recordsTotal).id,
  },
]

/** Compares a read with its SQL: the same statement on the same table, sent by a bare server. */
export const reads: Benchmark = {
  name: 'reads',
  run: async ({ rounds, nodeOptions, only }) => {
    const place = await openPlace()
    try {
      const texts = await fill(place)
      const ours = await startOurs(place, { nodeOptions })
      try {
        const rows: Row[] = []
        for (const one of cases.filter(({ name }) => name.includes(only)))
          rows.push(await runCase(one, { place, port: ours.port, rounds, texts, nodeOptions }))
        return rows
      } finally {
        await ours.stop()
      }
    } finally {
      await place.close()
    }
  },
}

/** Stores the records, and gives the SQL texts that the service sends for the reads. */
async function fill(place: Place): Promise<readonly string[]> {
  const flags = { config: configFile, port: '0', dataDir: place.serviceDir, operatorKey }
  const config = readConfig({ ...flags, databaseUrl: place.databaseUrl }, {})
  const running = await startService({ config, world: realWorld })
  try {
    const port = Number(new URL(running.url).port)
    await storeItems(port, { total: recordsTotal })
    const texts: string[] = []
    running.service.queryRunner.database.observe((text) => texts.push(text))
    for (const one of cases) await call(port, '/list', { body: makeRequest(one, 0) })
    await place.database.execute(sql`VACUUM ANALYZE`)
    await place.database.execute(sql`CHECKPOINT`)
    return texts
  } finally {
    await running.close()
  }
}

type Filling = {
  readonly total: number
  readonly policy?: object
  readonly onProgress?: (done: number) => void
}

/** Creates the application and its collection, and fills it; gives the application's key. */
export async function storeItems(port: number, filling: Filling): Promise<string> {
  const key = await createApplication(port)
  await fillCollection(port, { ...filling, key, name: collection })
  return key
}

/** Creates a collection and fills it through the public interface. */
export async function fillCollection(
  port: number,
  filling: Filling & { readonly key: string; readonly name: string },
): Promise<void> {
  const { key, name, total, policy, onProgress } = filling
  await createCollection(port, { key, name, ...(policy && { policy }) })
  for (let at = 0; at < total; at += batchSize) {
    const data = Array.from({ length: Math.min(batchSize, total - at) }, (_, n) =>
      makeItem(at + n, total),
    )
    await call(port, '/store?wait=true', { key, body: { root: `${app}::${name}`, data } })
    onProgress?.(at + data.length)
  }
}

function makeRequest(one: Read, at: number): object {
  return {
    root: `${app}::${collection}`,
    find: { [one.field]: { is: one.makeValue(at) } },
    limit: one.limit,
  }
}

async function runCase(
  one: Read,
  bench: {
    readonly place: Place
    readonly port: number
    readonly rounds: number
    readonly texts: readonly string[]
    readonly nodeOptions: readonly string[]
  },
): Promise<Row> {
  const { place, port, rounds } = bench
  const list = compileListStatement({ ...one, total: true })
  if (!bench.texts.includes(list.text))
    throw new Error(`the service sends another statement than\n${list.text}`)
  // Every record is requested about as often, in no order that caches would like.
  const requests = Array.from({ length: requestsPerRound }, (_, at) =>
    makeHttpRequest('/list', JSON.stringify(makeRequest(one, (at * 7919) % recordsTotal))),
  )
  const load = { connections, requests, status: 200 }
  const peerWith = async (poolSize: number) => {
    const server = await startPeer(
      'bare-server',
      { connection: place.connection, poolSize, list },
      bench.nodeOptions,
    )
    const run = async () => requireNoFailure(await drive({ ...load, port: server.port })).perSecond
    return { port: server.port, run, stop: server.stop }
  }
  const poolSize = await findBestPool(poolSizes, peerWith)
  const peer = await peerWith(poolSize)
  try {
    await mustAnswerAlike(requests[0] ?? Buffer.alloc(0), { ours: port, peer: peer.port })
    const ours = async () => requireNoFailure(await drive({ ...load, port })).perSecond
    await ours()
    await peer.run()
    return {
      name: `${one.name}, 100,000 records, ${connections} connections`,
      unit: 'requests/s',
      target: 0.6,
      comparison: await interleave({ rounds, ours, peer: peer.run }),
      note: `bare server's pool: ${poolSize} connections, the best of ${poolSizes.join(', ')}`,
    }
  } finally {
    await peer.stop()
  }
}

/** Compiles the statement of a read, with placeholders for the request's value. */
export function compileListStatement(read: {
  readonly field: string
  readonly limit: number
  readonly total: boolean
}) {
  return compileList(parseList({ find: { [read.field]: { is: valuePlace } }, limit: read.limit }), {
    schema: 'app_1',
    table: 'c_1',
    caps: { rows: limits.rowsMax, bytes: limits.resultBytesMax },
    total: read.total,
    primaryColumn: 'id',
  })
}

async function mustAnswerAlike(
  request: Buffer,
  ports: { readonly ours: number; readonly peer: number },
): Promise<void> {
  const [ours, peer] = await Promise.all([
    sendOnce(ports.ours, request),
    sendOnce(ports.peer, request),
  ]).then((replies) => replies.map((reply) => JSON.parse(reply.body.toString())))
  if (ours.records.length === 0 || JSON.stringify(ours.records) !== JSON.stringify(peer.records))
    throw new Error('the two sides answer differently')
}
