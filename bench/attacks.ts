import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Attack, runAttacker } from './attacker.ts'
import { drive, makeHttpRequest, requireNoFailure } from './load.ts'
import { app, call, createApplication, operatorKey, startPeer, startServe } from './place.ts'
import type { Child } from './process.ts'
import type { Benchmark, Row, RunOptions } from './report.ts'
import { interleave } from './rounds.ts'

const roundMs = 5_000
const readEveryMs = 20
const victim = 'victim'
const recordsTotal = 2_000

const many = (count: number, make: (at: number) => unknown) =>
  Array.from({ length: count }, (_, at) => make(at))
const own = `${app}::own`
const sql = (text: string) => ({ path: '/query/sql', body: { sql: text } }) as const
const find = (condition: object) =>
  ({ path: '/list', body: { root: own, find: condition } }) as const
const nested = (depth: number, around: (inner: string) => string): string =>
  depth === 0 ? 'text' : around(nested(depth - 1, around))

/** The requests that one caller can send to the harm of all others, each as often as its connections allow. */
const attacks: readonly Attack[] = [
  {
    name: 'statements of 64 KB over an unknown application',
    connections: 15,
    ...sql(`SELECT ${many(31_000, () => 'a').join()} FROM nobody::things`),
    isKeyed: false,
  },
  {
    name: 'statements of 64 KB over free data',
    connections: 15,
    ...sql(`SELECT ${many(31_000, () => 'a').join()} FROM ${own}`),
    isKeyed: false,
  },
  {
    name: 'finds of 4,000 patterns',
    connections: 15,
    ...find({ or: many(4_000, (at) => ({ text: { regExpMatches: `^(a|b){1,${at % 200}}x` } })) }),
    isKeyed: false,
  },
  {
    name: 'finds of 30 patterns, which are run',
    connections: 15,
    ...find({ or: many(30, (at) => ({ text: { regExpMatches: `(a|b|x){1,${at + 1}}y` } })) }),
    isKeyed: false,
  },
  {
    name: 'finds of 500,000 values',
    connections: 15,
    ...find({ text: { in: many(500_000, (at) => at) } }),
    isKeyed: false,
  },
  {
    name: 'bodies of 300,000 members',
    connections: 15,
    ...find(Object.fromEntries(many(300_000, (at) => [`k${at}`, 1]) as [string, unknown][])),
    isKeyed: false,
  },
  {
    name: "cross joins over the attacker's own data",
    connections: 36,
    ...sql(
      `SELECT count(*) AS n FROM ${own} a CROSS JOIN ${own} b CROSS JOIN ${own} c WHERE a.n + b.n + c.n = 0`,
    ),
    isKeyed: true,
  },
  {
    name: 'texts that grow in each other',
    connections: 15,
    ...sql(
      `SELECT ${nested(12, (inner) => `replace(${inner}, 'x', 'xxxxxxxxxx')`)} AS t FROM ${own}`,
    ),
    isKeyed: true,
  },
  {
    name: 'stores of 1,000 records without end',
    connections: 4,
    path: '/store',
    body: { root: `${app}::filled`, data: many(1_000, () => ({ text: 'x'.repeat(400) })) },
    isKeyed: true,
  },
]

/** Measures free reads of another application beside one caller who tries to slow them down. */
export const besideAttacks: Benchmark = { name: 'attacks', run }

/**
 * The service has the database of its own that it starts by default: it lets heavy reads run behind others there, and
 * cannot where the database is of a URL.
 */
async function run({ rounds, only }: RunOptions): Promise<readonly Row[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-bench-'))
  const ours = await startServe(dataDir)
  const refusing = await startPeer('refusing-server', {})
  try {
    const key = await prepare(ours.port)
    const rows: Row[] = []
    for (const attack of attacks.filter(({ name }) => name.includes(only)))
      rows.push(await measure(attack, { rounds, ours, refusing, key }))
    return rows
  } finally {
    await refusing.stop()
    await ours.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/**
 * Measures the reads beside the attack, and beside the same load on a server that refuses all of it at once: what the
 * attacker's own program takes from the machine is no fault of ours.
 */
async function measure(
  attack: Attack,
  { rounds, ours, refusing, key }: { rounds: number; ours: Child; refusing: Child; key: string },
): Promise<Row> {
  let answered = 0
  const readBeside = async (port: number) => {
    const attacker = await runAttacker(attack, { port, key, forMs: roundMs })
    const p95 = await readFor(ours.port)
    answered = await attacker.answered
    return p95
  }
  const alone = () => readFor(ours.port)
  const refused = await interleave({ rounds, ours: () => readBeside(refusing.port), peer: alone })
  const comparison = await interleave({ rounds, ours: () => readBeside(ours.port), peer: alone })
  return {
    name: `p95 of another application's free point reads beside ${attack.name} (ours), and alone (peer)`,
    unit: 'ms',
    most: 3,
    comparison,
    note: `${attack.connections} connections, ${Math.round(answered / (roundMs / 1000))} requests/s in the last round; one read each ${readEveryMs} ms; ${refused.ratio.median.toFixed(2)} beside a server that refuses all of it at once`,
  }
}

/** Makes two applications with records that anybody may read; gives the attacker's key. */
async function prepare(port: number): Promise<string> {
  const key = await createApplication(port)
  const body = { name: 'Victim', app_id: victim }
  const { app_key } = await call(port, '/api/apps', { body, key: operatorKey })
  for (const [of, name, with_] of [
    [app, 'own', key],
    [victim, 'notes', String(app_key)],
  ] as const) {
    const created = { name, access_policy: 'public' }
    await call(port, `/api/apps/${of}/collections`, { key: with_, body: created })
    const data = many(recordsTotal, (at) => ({ id: `k${at}`, n: at + 1, text: 'x'.repeat(400) }))
    await call(port, '/store?wait=true', { key: with_, body: { root: `${of}::${name}`, data } })
  }
  return key
}

/** Measures the p95 of the victim's reads during a round. */
async function readFor(port: number): Promise<number> {
  const requests = Array.from({ length: roundMs / readEveryMs }, (_, at) => {
    const body = {
      root: `${victim}::notes`,
      find: { id: `k${(at * 7919) % recordsTotal}` },
      limit: 1,
    }
    return makeHttpRequest('/list', JSON.stringify(body))
  })
  const load = { port, connections: 1, requests, status: 200, everyMs: readEveryMs }
  return requireNoFailure(await drive(load)).p95
}
