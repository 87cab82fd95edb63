import { startService } from '@tollbase/server/app'
import { realWorld } from '@tollbase/server/base/world'
import { readConfig } from '@tollbase/server/config/config'
import { sql } from '@tollbase/server/database/sql'
import {
  bareRequest,
  bareStatement,
  type Case,
  casesOf,
  directusRecords,
  directusRequest,
  fewLookup,
  groupRequest,
  lookup,
  ourRequest,
  postgraphileRecords,
  postgraphileRequest,
} from './engine-cases.ts'
import { fewTotal, fillCollections, fillPeersTable } from './engine-data.ts'
import { drive, noFailure, once } from './load.ts'
import { installPeers, startPackagedPeer, versionOfPeer } from './peers/packaged.ts'
import { configFile, openPlace, operatorKey, type Place, startOurs, startPeer } from './place.ts'
import type { Child } from './process.ts'
import { parentOf } from './processes.ts'
import type { Benchmark, Row, RunOptions } from './report.ts'
import { interleave } from './rounds.ts'
import { compareSides, plainRecords, runSide, type Side } from './sides.ts'

/** As many connections as our service has to its database. */
const poolSize = 10
/** As our own program is started. */
const nodeFlags = ['--max-semi-space-size=32']

/** `share` of the requests make a round: as many as it answers in seconds. */
const packaged = {
  postgraphile: { request: postgraphileRequest, recordsOf: postgraphileRecords, share: 1 },
  directus: { request: directusRequest, recordsOf: directusRecords, share: 0.25 },
} as const
const packagedNames = ['postgraphile', 'directus'] as const

/** The query engine against the same database without it: what stands between callers and their rows. */
export const engine: Benchmark = {
  name: 'engine',
  run: async (options) => {
    if (options.withPeers) installPeers(packagedNames)
    const place = await openPlace()
    try {
      await fill(place, options)
      await mustSend(place, casesOf(options.records))
      return await withServers(place, options, (bench) => measure(bench))
    } finally {
      await place.close()
    }
  },
}

async function fill(place: Place, { records, withPeers }: RunOptions): Promise<void> {
  const ours = await startOurs(place, { nodeOptions: [] })
  try {
    await fillCollections(ours.port, records)
  } finally {
    await ours.stop()
  }
  if (withPeers) await fillPeersTable(place)
  for (const statement of [sql`VACUUM ANALYZE`, sql`CHECKPOINT`])
    await place.database.apart((session) => session.execute(statement), {
      statementTimeoutMs: 0,
      lockTimeoutMs: 0,
    })
}

/** The service sends the statement that the bare server is given, and one only where that one is made by hand. */
async function mustSend(place: Place, cases: readonly Case[]): Promise<void> {
  const flags = { config: configFile, port: '0', dataDir: place.serviceDir, operatorKey }
  const config = readConfig({ ...flags, databaseUrl: place.databaseUrl }, {})
  const running = await startService({ config, world: realWorld })
  try {
    const port = Number(new URL(running.url).port)
    // The first request opens the application's chain, which reads much else.
    for (const one of cases) await once(port, ourRequest(one, 0))
    for (const one of cases) {
      const texts: string[] = []
      const stop = running.service.queryDatabase.observe((text) => texts.push(text))
      const { status, body } = await once(port, ourRequest(one, 0))
      stop()
      if (status !== 200) throw new Error(`${one.name}: ${status} ${body.toString()}`)
      const queries = texts.filter((text) => /\bFROM\s+"app_1"\./.test(text))
      const isSame = one.byHand !== undefined || queries[0] === bareStatement(one, 0).text
      if (queries.length !== 1 || !isSame)
        throw new Error(`${one.name}: the service sends\n${queries.join('\n\n')}`)
    }
  } finally {
    await running.close()
  }
}

type Bench = RunOptions & {
  readonly ours: Child
  readonly bare: Child
  readonly peers: ReadonlyMap<(typeof packagedNames)[number], Child>
  readonly postmaster: number
}

async function withServers<T>(
  place: Place,
  options: RunOptions,
  work: (bench: Bench) => Promise<T>,
): Promise<T> {
  const { connection, database } = place
  const { nodeOptions, records } = options
  const statements = Object.fromEntries(
    casesOf(records).map((one) => [one.name, bareStatement(one, 0).text]),
  )
  const flags = [...nodeFlags, ...nodeOptions]
  const children: Child[] = []
  const start = async (child: Promise<Child>) => {
    children.push(await child)
    return child
  }
  try {
    const ours = await start(startOurs(place, { nodeOptions }))
    const bare = await start(startPeer('bare-server', { connection, poolSize, statements }, flags))
    const peers = new Map<(typeof packagedNames)[number], Child>()
    for (const name of options.withPeers ? packagedNames : [])
      peers.set(name, await start(startPackagedPeer(name, { connection, poolSize }, flags)))
    const [row] = await database.query<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`)
    return await work({ ...options, ours, bare, peers, postmaster: parentOf(row?.pid ?? 0) })
  } finally {
    for (const child of children) await child.stop()
  }
}

async function measure(bench: Bench): Promise<readonly Row[]> {
  const parts = [
    ...casesOf(bench.records).map((one) => ({
      name: one.name,
      run: () => againstBare(one, bench),
    })),
    ...[...bench.peers.keys()].map((name) => ({
      name: `${lookup(bench.records).name} ${name}`,
      run: () => againstPeer(name, bench),
    })),
    { name: 'lookups beside a group', run: () => besideGroups(bench) },
    { name: 'growth of lookups', run: () => growth(bench) },
  ]
  const rows: Row[] = []
  for (const part of parts.filter(({ name }) => name.includes(bench.only))) {
    process.stderr.write(`measuring ${part.name} ...\n`)
    rows.push(await part.run())
  }
  return rows
}

function ourSide(one: Case, { ours }: Bench): Side {
  return { ...ours, requestOf: (at) => ourRequest(one, at), recordsOf: plainRecords }
}

async function againstBare(one: Case, bench: Bench): Promise<Row> {
  const { rounds, postmaster } = bench
  const ours = ourSide(one, bench)
  const peer = {
    ...bench.bare,
    requestOf: (at: number) => bareRequest(one, at),
    recordsOf: plainRecords,
  }
  const { comparison, cpu } = await compareSides({ ours, peer }, { ...one, postmaster, rounds })
  return {
    name: `${one.name}, ${conditions(one, bench)}`,
    unit: 'requests/s',
    target: one.target,
    comparison,
    note: `bare server, ${one.note}; ${cpu}`,
  }
}

async function againstPeer(name: (typeof packagedNames)[number], bench: Bench): Promise<Row> {
  const { rounds, postmaster, records, peers } = bench
  const child = peers.get(name)
  if (child === undefined) throw new Error(`${name} was not started`)
  const one = lookup(records)
  const { request, recordsOf } = packaged[name]
  const peer = { ...child, requestOf: (at: number) => request(at, records), recordsOf }
  const load = { ...one, count: Math.ceil(one.count * packaged[name].share), postmaster, rounds }
  const { comparison, cpu } = await compareSides({ ours: ourSide(one, bench), peer }, load)
  return {
    name: `${one.name}, ${conditions(one, bench)}`,
    unit: 'requests/s',
    target: 2,
    comparison,
    note: `${name} ${versionOfPeer(name)}; ${cpu}`,
  }
}

/** How much longer lookups take while one caller groups all records again and again. */
async function besideGroups(bench: Bench): Promise<Row> {
  const { rounds, postmaster, ours, records } = bench
  const one = lookup(records)
  const side = ourSide(one, bench)
  let groups = 0
  const quiet = async () => (await runSide(side, { ...one, postmaster })).p95 * 1000
  const busy = async () => {
    let isOver = false
    const loop = async () => {
      while (!isOver) {
        noFailure(
          await drive({ port: ours.port, connections: 1, requests: [groupRequest], status: 200 }),
        )
        groups += 1
      }
    }
    const looping = loop()
    const p95 = await quiet()
    isOver = true
    await looping
    return p95
  }
  await quiet()
  return {
    name: `p95 of ${one.name} while a group of all records runs in a loop (ours) and in quiet (peer), ${conditions(one, bench)}`,
    unit: 'µs',
    most: 3,
    comparison: await interleave({ rounds, ours: busy, peer: quiet }),
    note: `${groups} groups in the time`,
  }
}

/** How much longer a lookup takes in the large collection. */
async function growth(bench: Bench): Promise<Row> {
  const { rounds, postmaster, records } = bench
  const [large, small] = [lookup(records), fewLookup()]
  const p50Of = (one: Case) => async () =>
    (await runSide(ourSide(one, bench), { ...one, postmaster })).p50 * 1000
  await p50Of(large)()
  await p50Of(small)()
  return {
    name: `p50 of ${large.name} among ${text(records)} records (ours) and ${text(fewTotal)} (peer), ${large.connections} connections`,
    unit: 'µs',
    most: 1.3,
    comparison: await interleave({ rounds, ours: p50Of(large), peer: p50Of(small) }),
    note: 'our service on both sides',
  }
}

function conditions({ connections }: Case, { records }: Bench): string {
  const many = connections === 1 ? '1 connection' : `${connections} connections`
  return `${text(records)} records, ${many}`
}

function text(count: number): string {
  return count.toLocaleString('en-US')
}
