import { startService } from '@tollbase/server/app'
import { realWorld } from '@tollbase/server/base/world'
import { readConfig } from '@tollbase/server/config/config'
import { sql } from '@tollbase/server/database/sql'
import {
  type Case,
  groupRequest,
  makeBareRequest,
  makeBareStatement,
  makeCases,
  makeDirectusRequest,
  makeFewLookup,
  makeLookup,
  makeOurRequest,
  makePostgraphileRequest,
  parseDirectusRecords,
  parsePostgraphileRecords,
} from './engine-cases.ts'
import { fewTotal, fillCollections, fillPeersTable, fillPlainTable } from './engine-data.ts'
import { drive, requireNoFailure, sendOnce } from './load.ts'
import { installPeers, readPeerVersion, startPackagedPeer } from './peers/packaged.ts'
import { configFile, openPlace, operatorKey, type Place, startOurs, startPeer } from './place.ts'
import type { Child } from './process.ts'
import { findParentPid } from './processes.ts'
import type { Benchmark, Row, RunOptions } from './report.ts'
import { interleave } from './rounds.ts'
import { compareSides, parsePlainRecords, runSide, type Side } from './sides.ts'

/** The peers get as many connections as our service has to its database. */
const poolSize = 10
/** The peers get the options with which our own program is started. */
const nodeFlags = ['--max-semi-space-size=32']

/** `share` of the requests make a round: as many as it answers in seconds. */
const packaged = {
  postgraphile: {
    request: makePostgraphileRequest,
    parseRecords: parsePostgraphileRecords,
    share: 1,
  },
  directus: { request: makeDirectusRequest, parseRecords: parseDirectusRecords, share: 0.25 },
} as const
const packagedNames = ['postgraphile', 'directus'] as const

/**
 * Compares the query engine with the same database without it, to show the cost of all that stands between callers
 * and their rows.
 */
export const engine: Benchmark = {
  name: 'engine',
  run: async (options) => {
    if (options.withPeers) installPeers(packagedNames)
    const place = await openPlace()
    try {
      await fill(place, options)
      await mustSend(place, makeCases(options.records))
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
  await fillPlainTable(place)
  if (withPeers) await fillPeersTable(place)
  for (const statement of [sql`VACUUM ANALYZE`, sql`CHECKPOINT`])
    await place.database.useDedicatedSession((session) => session.execute(statement), {
      statementTimeoutMs: 0,
      lockTimeoutMs: 0,
    })
}

/**
 * Checks that the service sends the statement that the bare server is given, except where that one is made by hand.
 */
async function mustSend(place: Place, cases: readonly Case[]): Promise<void> {
  const flags = { config: configFile, port: '0', dataDir: place.serviceDir, operatorKey }
  const config = readConfig({ ...flags, databaseUrl: place.databaseUrl }, {})
  const running = await startService({ config, world: realWorld })
  try {
    const port = Number(new URL(running.url).port)
    // The first request also opens the application's chain, which reads much else.
    for (const one of cases) await sendOnce(port, makeOurRequest(one, 0))
    for (const one of cases) {
      const texts: string[] = []
      const stop = running.service.queryRunner.database.observe((text) => texts.push(text))
      const { status, body } = await sendOnce(port, makeOurRequest(one, 0))
      stop()
      if (status !== 200) throw new Error(`${one.name}: ${status} ${body.toString()}`)
      // One that takes long on a busy machine is sent again, with more time.
      const queries = [...new Set(texts.filter((text) => /\bFROM\s+"app_1"\./.test(text)))]
      const isSame = one.byHand !== undefined || queries[0] === makeBareStatement(one, 0).text
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
    makeCases(records).map((one) => [one.name, makeBareStatement(one, 0).text]),
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
    return await work({ ...options, ours, bare, peers, postmaster: findParentPid(row?.pid ?? 0) })
  } finally {
    for (const child of children) await child.stop()
  }
}

async function measure(bench: Bench): Promise<readonly Row[]> {
  await warmUp(bench)
  const parts = [
    ...makeCases(bench.records).map((one) => ({
      name: one.name,
      run: () => againstBare(one, bench),
    })),
    ...[...bench.peers.keys()].map((name) => ({
      name: `${makeLookup(bench.records).name} ${name}`,
      run: () => againstPeer(name, bench),
    })),
    { name: 'lookups beside a group', run: () => besideGroups(bench) },
    { name: 'growth of lookups', run: () => growth(bench) },
  ]
  const rows: Row[] = []
  const wanted = bench.only.split('|')
  for (const part of parts.filter(({ name }) => wanted.some((each) => name.includes(each)))) {
    process.stderr.write(`measuring ${part.name} ...\n`)
    rows.push(await part.run())
  }
  return rows
}

/**
 * Has both servers answer lookups, so that their code is compiled whichever cases are measured: some cases have only
 * hundreds of requests, and a program of more code is slower for longer without.
 */
async function warmUp(bench: Bench): Promise<void> {
  const one = makeLookup(bench.records)
  const { ours, peer } = makeSides(one, bench)
  for (const side of [ours, peer]) await runSide(side, { ...one, postmaster: bench.postmaster })
}

function makeSides(one: Case, bench: Bench): { readonly ours: Side; readonly peer: Side } {
  const makeRequest = (at: number) => makeBareRequest(one, at)
  return {
    ours: ourSide(one, bench),
    peer: { ...bench.bare, makeRequest, parseRecords: parsePlainRecords },
  }
}

function ourSide(one: Case, { ours }: Bench): Side {
  return { ...ours, makeRequest: (at) => makeOurRequest(one, at), parseRecords: parsePlainRecords }
}

async function againstBare(one: Case, bench: Bench): Promise<Row> {
  const { rounds, postmaster } = bench
  const load = { ...one, postmaster, rounds }
  const { comparison, cpu } = await compareSides(makeSides(one, bench), load)
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
  const one = makeLookup(records)
  const { request, parseRecords } = packaged[name]
  const peer = { ...child, makeRequest: (at: number) => request(at, records), parseRecords }
  const load = { ...one, count: Math.ceil(one.count * packaged[name].share), postmaster, rounds }
  const { comparison, cpu } = await compareSides({ ours: ourSide(one, bench), peer }, load)
  return {
    name: `${one.name}, ${conditions(one, bench)}`,
    unit: 'requests/s',
    target: 2,
    comparison,
    note: `${name} ${readPeerVersion(name)}; ${cpu}`,
  }
}

/** Measures how much longer lookups take while one caller groups all records again and again. */
async function besideGroups(bench: Bench): Promise<Row> {
  const { rounds, postmaster, ours, records } = bench
  const one = makeLookup(records)
  const side = ourSide(one, bench)
  let groups = 0
  const quiet = async () => (await runSide(side, { ...one, postmaster })).p95 * 1000
  const busy = async () => {
    let isOver = false
    const loop = async () => {
      while (!isOver) {
        requireNoFailure(
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

/** Measures how much longer a lookup takes in the large collection. */
async function growth(bench: Bench): Promise<Row> {
  const { rounds, postmaster, records } = bench
  const [large, small] = [makeLookup(records), makeFewLookup()]
  const makeP50Run = (one: Case) => async () =>
    (await runSide(ourSide(one, bench), { ...one, postmaster })).p50 * 1000
  await makeP50Run(large)()
  await makeP50Run(small)()
  return {
    name: `p50 of ${large.name} among ${text(records)} records (ours) and ${text(fewTotal)} (peer), ${large.connections} connections`,
    unit: 'µs',
    most: 1.3,
    comparison: await interleave({ rounds, ours: makeP50Run(large), peer: makeP50Run(small) }),
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
