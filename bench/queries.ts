import { limits } from '@tollbase/contract/limits'
import { startService } from '@tollbase/server/app'
import { realWorld } from '@tollbase/server/base/world'
import { readConfig } from '@tollbase/server/config/config'
import { sql } from '@tollbase/server/database/sql'
import { bindValues, ownParameters } from '@tollbase/server/query/parameter'
import { readTemplate } from '@tollbase/server/query/predefined/template'
import type { CompiledStatement } from '@tollbase/server/query/sql-text'
import { getCity, makeItem } from './documents.ts'
import { drive, makeHttpGet, makeHttpRequest, requireNoFailure, sendOnce } from './load.ts'
import {
  app,
  call,
  configFile,
  keepingConfigFile,
  openPlace,
  operatorKey,
  type Place,
  startOurs,
  startPeer,
} from './place.ts'
import { findBestPool } from './pools.ts'
import { collection, recordsTotal, storeItems } from './reads.ts'
import type { Benchmark, Row } from './report.ts'
import { interleave } from './rounds.ts'

const connections = 16
const requestsPerRound = 12_000
const poolSizes = [4, 8, 16]
const limit = 20

type Ask = {
  readonly name: string
  readonly query: string
  readonly field: 'city' | 'id'
  readonly makeValue: (at: number) => string
  /** Every request has the same values, and answers are cached. */
  readonly isRepeated?: boolean
}

const cases: readonly Ask[] = [
  {
    name: 'predefined query: the 10 records of one indexed value',
    query: 'by-city',
    field: 'city',
    makeValue: (at) => getCity(at, recordsTotal),
  },
  {
    name: 'predefined query: one record by its key',
    query: 'by-id',
    field: 'id',
    makeValue: (at) => makeItem(at, recordsTotal).id,
  },
]

const repeated: readonly Ask[] = cases.slice(0, 1).map((one) => ({
  ...one,
  name: `${one.name}, the same again and again, answered from memory`,
  isRepeated: true,
}))

/** Compares a predefined query with its SQL: the same prepared statement, sent by a bare server. */
export const queries: Benchmark = {
  name: 'queries',
  run: async ({ rounds, nodeOptions, only }) => {
    const place = await openPlace()
    try {
      const texts = await fill(place)
      const rows: Row[] = []
      for (const [asked, config] of [
        [cases, configFile],
        [repeated, keepingConfigFile],
      ] as const) {
        const chosen = asked.filter(({ name }) => name.includes(only))
        if (chosen.length === 0) continue
        const ours = await startOurs(place, { nodeOptions, config })
        try {
          for (const one of chosen)
            rows.push(await runCase(one, { place, port: ours.port, rounds, texts, nodeOptions }))
        } finally {
          await ours.stop()
        }
      }
      return rows
    } finally {
      await place.close()
    }
  },
}

function makeDefinition({ query, field }: Ask) {
  return {
    name: query,
    source_collection: collection,
    parameters: [{ name: 'v', field_path: field }],
  }
}

/** Stores the records, defines the queries, and gives the SQL texts that the service sends for them. */
async function fill(place: Place): Promise<readonly string[]> {
  const flags = { config: configFile, port: '0', dataDir: place.serviceDir, operatorKey }
  const config = readConfig({ ...flags, databaseUrl: place.databaseUrl }, {})
  const running = await startService({ config, world: realWorld })
  try {
    const port = Number(new URL(running.url).port)
    const key = await storeItems(port, { total: recordsTotal })
    const texts: string[] = []
    running.service.queryRunner.database.observe((text) => texts.push(text))
    for (const one of cases) {
      await call(port, `/api/apps/${app}/queries`, { key, body: makeDefinition(one) })
      await sendOnce(port, makeHttpGet(makePath(one, 0)))
    }
    await place.database.execute(sql`VACUUM ANALYZE`)
    await place.database.execute(sql`CHECKPOINT`)
    return texts
  } finally {
    await running.close()
  }
}

function makePath(one: Ask, at: number): string {
  const value = encodeURIComponent(one.makeValue(at))
  return `/api/queries/${app}/${one.query}/data?v=${value}&limit=${limit}`
}

/** Compiles the statement of a query as the service does, its values still open. */
async function compileStatement(one: Ask): Promise<CompiledStatement> {
  const { source_collection, parameters } = makeDefinition(one)
  const text = { source_collection, parameters, minGroupSize: undefined }
  const template = await readTemplate(text, { home: app, typesOf: () => undefined })
  const variant = { given: new Set(['v']), sort: undefined, isSmall: true }
  return template.compile(variant, {
    schema: 'app_1',
    primaryColumn: 'id',
    resolve: () => ({ schema: 'app_1', table: 'c_1' }),
    position: undefined,
    sort: undefined,
  })
}

function bindQueryValues({ values }: CompiledStatement, value: string): readonly unknown[] {
  return bindValues(
    values,
    new Map<string, string | number>([
      ['v', value],
      [ownParameters.limit, limit],
      [ownParameters.offset, 0],
      [ownParameters.bytes, limits.resultBytesMax],
    ]),
  )
}

async function runCase(
  one: Ask,
  bench: {
    readonly place: Place
    readonly port: number
    readonly rounds: number
    readonly texts: readonly string[]
    readonly nodeOptions: readonly string[]
  },
): Promise<Row> {
  const { place, port, rounds } = bench
  const statement = await compileStatement(one)
  if (!bench.texts.includes(statement.text))
    throw new Error(`the service sends another statement than\n${statement.text}`)
  // Every record is requested about as often, in no order that caches would like.
  const order = Array.from({ length: requestsPerRound }, (_, at) =>
    one.isRepeated === true ? 0 : (at * 7919) % recordsTotal,
  )
  const requests = order.map((at) => makeHttpGet(makePath(one, at)))
  // The peer need not parse a query string and make the values.
  const peerRequests = order.map((at) => {
    const values = bindQueryValues(statement, one.makeValue(at))
    return makeHttpRequest('/query', JSON.stringify({ name: one.query, values }))
  })
  const load = { connections, status: 200 }
  const peerWith = async (poolSize: number) => {
    const server = await startPeer(
      'bare-server',
      {
        connection: place.connection,
        poolSize,
        statements: { [one.query]: statement.text },
      },
      bench.nodeOptions,
    )
    const run = async () =>
      requireNoFailure(await drive({ ...load, requests: peerRequests, port: server.port }))
        .perSecond
    return { port: server.port, run, stop: server.stop }
  }
  const poolSize = await findBestPool(poolSizes, peerWith)
  const peer = await peerWith(poolSize)
  try {
    await mustAnswerAlike(
      { port, request: requests[0] ?? Buffer.alloc(0) },
      { port: peer.port, request: peerRequests[0] ?? Buffer.alloc(0) },
    )
    const ours = async () => requireNoFailure(await drive({ ...load, requests, port })).perSecond
    await ours()
    await peer.run()
    return {
      name: `${one.name}, 100,000 records, ${connections} connections`,
      unit: 'requests/s',
      ...(one.isRepeated !== true && { target: 0.9 }),
      comparison: await interleave({ rounds, ours, peer: peer.run }),
      note: `${one.isRepeated === true ? 'ours does not ask the database, the bare server does; ' : ''}the same prepared statement; bare server's pool: ${poolSize} connections, the best of ${poolSizes.join(', ')}`,
    }
  } finally {
    await peer.stop()
  }
}

type Side = { readonly port: number; readonly request: Buffer }

async function mustAnswerAlike(ours: Side, peer: Side): Promise<void> {
  const [mine, other] = await Promise.all(
    [ours, peer].map(async ({ port, request }) =>
      JSON.parse((await sendOnce(port, request)).body.toString()),
    ),
  )
  if (mine.data.length === 0 || JSON.stringify(mine.data) !== JSON.stringify(other.records))
    throw new Error('the two sides answer differently')
}
