import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { noLog as log } from '@tollbase/server/base/log'
import { realWorld } from '@tollbase/server/base/world'
import { openDatabase } from '@tollbase/server/database/database'
import { startEmbeddedPostgres } from '@tollbase/server/database/embedded/server'
import { sql } from '@tollbase/server/database/sql'
import { printKeyExpression } from '@tollbase/server/query/index-key'

/**
 * Compares one table with an index that leads with the shard key to a table that is split into partitions by that
 * key: the same million records, the same statements. Prints a table; docs/decisions has its results.
 */
const rows = 1_000_000
const markets = 64
const repeats = 9

const columns = `leaf int8 NOT NULL, height int8 NOT NULL, sequence int4 NOT NULL, key text NOT NULL,
  deleted bool NOT NULL, superseded_by int8, data jsonb NOT NULL, body text NOT NULL`
const market = printKeyExpression(['market'])
const price = printKeyExpression(['price'])

const live = 'superseded_by IS NULL AND NOT deleted'
const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-bench-'))
const server = await startEmbeddedPostgres({ dataDir, world: realWorld, log })
const database = await openDatabase({
  connection: server.connection,
  poolSize: 1,
  statementTimeoutMs: 0,
})

try {
  await database.execute(sql`CREATE SCHEMA bench`)
  await makeTables()
  for (const table of ['indexed', 'partitioned']) {
    const fillMs = await timed(() => fill(table))
    await run(`ANALYZE bench.${table}`)
    console.log(`\n${table}: filled in ${Math.round(fillMs)} ms, ${await size(table)} MB`)
    for (const [name, text] of statements(table)) console.log(`${name}: ${await median(text)}`)
    await run(
      `CREATE INDEX ON bench.${table} ((${market}), (${price}), leaf) WHERE superseded_by IS NULL`,
    )
    await run(`ANALYZE bench.${table}`)
    console.log(`the same with an index on both fields: ${await median(filtered(table))}`)
  }
} finally {
  await database.close()
  await server.stop()
  rmSync(dataDir, { recursive: true, force: true })
}

async function makeTables(): Promise<void> {
  await run(`CREATE TABLE bench.indexed (${columns}, PRIMARY KEY (leaf))`)
  await run(`CREATE TABLE bench.partitioned (${columns}, market text NOT NULL)
    PARTITION BY LIST (market)`)
  for (let at = 0; at < markets; at++)
    await run(`CREATE TABLE bench.p_${at} PARTITION OF bench.partitioned FOR VALUES IN ('m${at}')`)
  // A partitioned table accepts no primary key that lacks the partition key.
  await run(`CREATE INDEX ON bench.partitioned (leaf)`)
  for (const table of ['indexed', 'partitioned']) {
    await run(`CREATE INDEX ON bench.${table} (key) WHERE superseded_by IS NULL`)
    await run(`CREATE INDEX ON bench.${table} ((${market}), leaf) WHERE superseded_by IS NULL`)
  }
}

function fill(table: string): Promise<void> {
  const [column, value] = table === 'indexed' ? ['', ''] : [', market', `, 'm' || (n % ${markets})`]
  return run(`INSERT INTO bench.${table} (leaf, height, sequence, key, deleted, data, body${column})
    SELECT n, n, 0, 'k' || n, false, body::jsonb, body${value} FROM (
      SELECT n, format('{"id":"k%s","market":"m%s","at":"2026-01-01T%s","price":%s}',
        n, n % ${markets}, lpad((n / 100)::text, 6, '0'), n % 977) AS body
      FROM generate_series(1, ${rows}) AS n) AS made`)
}

function oneMarket(table: string): string {
  const pruned = table === 'indexed' ? '' : ` AND market = 'm7'`
  return `${live} AND (${market}) = '"m7"'::jsonb${pruned}`
}

function filtered(table: string): string {
  return `SELECT count(*) FROM bench.${table} WHERE ${oneMarket(table)} AND (${price}) > '900'::jsonb`
}

function statements(table: string): readonly (readonly [string, string])[] {
  const keys = Array.from({ length: 500 }, (_, at) => `'k${at * 1999 + 1}'`).join(',')
  return [
    [
      'the first 100 of one key value',
      `SELECT body FROM bench.${table} WHERE ${oneMarket(table)} ORDER BY leaf LIMIT 100`,
    ],
    ['a condition over all of one key value', filtered(table)],
    [
      'a record by its primary key',
      `SELECT body FROM bench.${table} WHERE key = 'k4242' AND superseded_by IS NULL`,
    ],
    [
      'the newest 100 of all',
      `SELECT body FROM bench.${table} WHERE ${live} ORDER BY leaf DESC LIMIT 100`,
    ],
    [
      'the versions that 500 records replace',
      `UPDATE bench.${table} SET superseded_by = NULL WHERE key = ANY (ARRAY[${keys}]) AND superseded_by IS NULL`,
    ],
  ]
}

/** The medians of planning and execution, in milliseconds. */
async function median(text: string): Promise<string> {
  const plans: { 'Planning Time': number; 'Execution Time': number }[] = []
  for (let at = 0; at < repeats; at++) {
    const found = await database.query<{ 'QUERY PLAN': string }>(
      sql.compiled(`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${text}`, []),
    )
    plans.push(...JSON.parse(found[0]?.['QUERY PLAN'] ?? '[]'))
  }
  const middle = (name: 'Planning Time' | 'Execution Time') =>
    plans
      .map((plan) => plan[name])
      .sort((a, b) => a - b)
      .at(repeats >> 1)
      ?.toFixed(2)
  return `plan ${middle('Planning Time')} ms, run ${middle('Execution Time')} ms`
}

async function size(table: string): Promise<number> {
  const [row] = await database.query<{ mb: bigint }>(
    sql.compiled(
      `SELECT (sum(pg_total_relation_size(oid)) / 1048576)::int8 AS mb FROM pg_class
       WHERE oid = 'bench.${table}'::regclass OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'bench.${table}'::regclass)`,
      [],
    ),
  )
  return Number(row?.mb ?? 0)
}

async function run(text: string): Promise<void> {
  await database.execute(sql.compiled(text, []))
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now()
  await work()
  return performance.now() - from
}
