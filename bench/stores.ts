import { sql } from '@tollbase/server/database/sql'
import { makeItem, makeStoreBody } from './documents.ts'
import { drive, makeHttpRequest, requireNoFailure } from './load.ts'
import {
  app,
  call,
  createApplication,
  createBareTable,
  createCollection,
  openPlace,
  startOurs,
  startPeer,
} from './place.ts'
import { findBestPool } from './pools.ts'
import type { Benchmark, Row } from './report.ts'
import { interleave } from './rounds.ts'

const batchSize = 1000
const collectionsMax = 64
const poolSizes = [2, 4, 8, 16, 32]

type Case = {
  readonly name: string
  readonly target: number
  readonly connections: number
  readonly collections: number
  readonly requests: number
  readonly records: number
  /** The path of our store; with `?wait=true` the answer comes once the tables show the records. */
  readonly path: string
  readonly status: number
}

const cases: readonly Case[] = [
  {
    name: 'store, batches of 1000, until projected, 1 connection',
    target: 0.5,
    connections: 1,
    collections: 1,
    requests: 12,
    records: batchSize,
    path: '/store?wait=true',
    status: 200,
  },
  {
    name: 'store, batches of 1000, until projected, 4 connections',
    target: 0.5,
    connections: 4,
    collections: 1,
    requests: 24,
    records: batchSize,
    path: '/store?wait=true',
    status: 200,
  },
  ...[1, collectionsMax].map((collections) => ({
    name: `store, single records, 64 connections, ${collections} ${collections === 1 ? 'collection' : 'collections'}`,
    target: collections === 1 ? 1.2 : 1.1,
    connections: 64,
    collections,
    requests: 6400,
    records: 1,
    path: '/store',
    status: 202,
  })),
]

/** Compares a durable write with proofs, versions and a projection against a plain INSERT of the same documents. */
export const stores: Benchmark = {
  name: 'stores',
  run: async ({ rounds, nodeOptions, only }) => {
    const place = await openPlace()
    const ours = await startOurs(place, { nodeOptions })
    const rows: Row[] = []
    try {
      const key = await createApplication(ours.port)
      for (const one of cases.filter(({ name }) => name.includes(only)))
        rows.push(await runCase(one, { place, port: ours.port, key, rounds }))
    } finally {
      await ours.stop()
      await place.close()
    }
    return rows
  },
}

type Bench = {
  readonly place: Awaited<ReturnType<typeof openPlace>>
  readonly port: number
  readonly key: string
  readonly rounds: number
}

let stored = 0
let tables = 0

async function runCase(one: Case, bench: Bench): Promise<Row> {
  const { place, port, key, rounds } = bench
  const { connection } = place
  const names = Array.from({ length: one.collections }, () => `c_${++tables}`)
  for (const name of names) {
    await createCollection(port, { key, name })
    await createBareTable(place.database, name)
  }
  const ours = async () => {
    const requests = makeRequests(one, { names, path: one.path, headers: { 'x-app-key': key } })
    const startedAt = performance.now()
    requireNoFailure(
      await drive({ port, connections: one.connections, requests, status: one.status }),
    )
    // The clock runs until the tables show every record, even where the answers came before.
    if (one.status === 202)
      await call(port, '/store?wait=true', {
        key,
        body: { root: `${app}::${names[0]}`, data: [makeItem(stored++, 1e6)] },
      })
    return (one.requests * one.records * 1000) / (performance.now() - startedAt)
  }
  const peerWith = async (poolSize: number) => {
    const server = await startPeer('bare-server', { connection, poolSize })
    const run = async () => {
      const requests = makeRequests(one, { names, path: '/store', headers: {} })
      const load = { port: server.port, connections: one.connections, requests, status: 200 }
      return requireNoFailure(await drive(load)).perSecond * one.records
    }
    return { run, stop: server.stop }
  }
  const poolSize = await findBestPool(poolSizes, peerWith)
  // Both sides begin with empty tables and grow alike.
  for (const name of names) await place.database.execute(sql`TRUNCATE ${sql.id('bare', name)}`)
  const peer = await peerWith(poolSize)
  try {
    // The warm-up needs this many: with fewer requests the compilers of both engines are still at work while it is
    // measured.
    for (let warmUp = 0; warmUp < 2; warmUp++) {
      await ours()
      await peer.run()
    }
    const comparison = await interleave({ rounds, ours, peer: peer.run })
    return {
      ...one,
      unit: 'records/s',
      comparison,
      note: `bare server's pool: ${poolSize} connections, the best of ${poolSizes.join(', ')}`,
    }
  } finally {
    await peer.stop()
  }
}

function makeRequests(
  one: Case,
  to: {
    readonly names: readonly string[]
    readonly path: string
    readonly headers: Readonly<Record<string, string>>
  },
): Buffer[] {
  return Array.from({ length: one.requests }, (_, at) => {
    const items = Array.from({ length: one.records }, () => makeItem(stored++, 1e6))
    const root = `${app}::${to.names[at % to.names.length]}`
    return makeHttpRequest(to.path, makeStoreBody(root, items), to.headers)
  })
}
