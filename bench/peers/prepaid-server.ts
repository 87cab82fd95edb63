import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Client, Pool } from 'pg'
import { type BareConfig, makeListValues } from './bare-config.ts'
import { serve } from './serve.ts'

/**
 * The least that a prepaid read costs with the promises that ours has, written by hand for this one sale: node:http, pg,
 * prepared statements. A sale is durable before its answer leaves, is made once for a key's Idempotency-Key, never takes
 * more than there is, is three movements that add up to zero, keeps its answer for a retry, and is a leaf of a signed
 * block that names the block before it. One statement writes all sales that wait; the next statement takes those that
 * came meanwhile. Nothing else is done: no check of the request, no rights, no price rules, no limits of keys, no
 * tables of sales, no second process. A request without a key is the same read, free.
 */
export type PrepaidConfig = BareConfig & {
  /** The SHA-256 (hex) of the agent key, and what it has; atomic units. */
  readonly keyHash: string
  readonly balance: string
  readonly price: number
}

const config: PrepaidConfig = JSON.parse(process.argv[2] ?? '{}')
const pool = new Pool({ ...config.connection, max: config.poolSize })
const writer = new Client(config.connection)
const payers = new Map([[config.keyHash, 'app:agents']])
const { privateKey } = generateKeyPairSync('ed25519')

type Sale = {
  readonly payer: string
  readonly name: string
  readonly requestHash: string
  readonly answer: string
}

const tables = `
  DROP SCHEMA IF EXISTS prepaid CASCADE;
  CREATE SCHEMA prepaid;
  CREATE TABLE prepaid.account (name text PRIMARY KEY, balance int8 NOT NULL CHECK (balance >= 0)) WITH (fillfactor = 50);
  CREATE TABLE prepaid.block (height int8 PRIMARY KEY, header text NOT NULL, signature bytea NOT NULL, body text NOT NULL);
  CREATE TABLE prepaid.posting (height int8, sequence int4, line int4, account text NOT NULL, amount int8 NOT NULL,
    PRIMARY KEY (height, sequence, line));
  CREATE TABLE prepaid.reply (payer text, name text, request_hash text NOT NULL, answer text NOT NULL, PRIMARY KEY (payer, name));
  INSERT INTO prepaid.account VALUES ('app:agents', ${BigInt(config.balance)}), ('app:seller', 0), ('platform', 0)`

/** A name that is there already, or a balance that would fall below zero, refuses the statement. */
const commitText = `
  WITH paid AS (UPDATE prepaid.account AS one SET balance = one.balance + moved.amount
      FROM unnest($1::text[], $2::int8[]) AS moved (name, amount) WHERE one.name = moved.name),
    posted AS (INSERT INTO prepaid.posting SELECT $3, * FROM unnest($4::int4[], $5::int4[], $6::text[], $7::int8[])),
    kept AS (INSERT INTO prepaid.reply SELECT * FROM unnest($8::text[], $9::text[], $10::text[], $11::text[]))
  INSERT INTO prepaid.block VALUES ($3, $12, $13, $14)`

let waiting: { sale: Sale; resolve: () => void; reject: (error: unknown) => void }[] = []
let isCommitting = false
let head = { height: 0, hash: '' }

await writer.connect()
await writer.query(tables)
serve(answer)

async function answer({ headers }: IncomingMessage, body: string): Promise<string> {
  const text = await read(JSON.parse(body))
  const key = headers['x-agent-key']
  const name = headers['idempotency-key']
  if (key === undefined) return text
  const payer = payers.get(hash(String(key)))
  if (payer === undefined) throw new Error('unknown key')
  await sell({ payer, name: String(name), requestHash: hash(body), answer: text })
  return text
}

async function read(request: unknown): Promise<string> {
  const text = config.list?.text ?? ''
  const { rows } = await pool.query({ name: 'list', text, values: makeListValues(config, request) })
  const [page] = rows
  return `{"records":[${page.records}],"as_of":{"block_height":${page.height},"sequence":${page.sequence}}}`
}

/** Resolves when the sale is durable. */
function sell(sale: Sale): Promise<void> {
  return new Promise((resolve, reject) => {
    waiting.push({ sale, resolve, reject })
    if (!isCommitting) void commitWaiting()
  })
}

async function commitWaiting(): Promise<void> {
  isCommitting = true
  while (waiting.length > 0) {
    // Those of the same turn of the event loop share a block.
    await new Promise(setImmediate)
    const batch = waiting
    waiting = []
    try {
      await commit(batch.map(({ sale }) => sale))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
  isCommitting = false
}

async function commit(sales: readonly Sale[]): Promise<void> {
  const { price } = config
  const height = head.height + 1
  const fee = Math.floor(price / 5)
  const lines = sales.flatMap(({ payer }, at) => [
    { at, line: 0, account: payer, amount: -price },
    { at, line: 1, account: 'app:seller', amount: price - fee },
    { at, line: 2, account: 'platform', amount: fee },
  ])
  const sums = new Map<string, number>()
  for (const { account, amount } of lines)
    sums.set(account, (sums.get(account) ?? 0) + amount)
  const leaves = sales.map(({ payer, name, requestHash, answer }, at) =>
    JSON.stringify({
      ...{ payer, name, request_hash: requestHash, result_hash: hash(answer), at: Date.now() },
      postings: lines.slice(at * 3, at * 3 + 3),
    }),
  )
  const header = `${height}\n${head.hash}\n${hash(leaves.map(hash).join())}`
  await writer.query({
    name: 'commit',
    text: commitText,
    values: [
      ...[[...sums.keys()], [...sums.values()], height],
      ...[lines.map(({ at }) => at), lines.map(({ line }) => line)],
      ...[lines.map(({ account }) => account), lines.map(({ amount }) => amount)],
      ...[sales.map(({ payer }) => payer), sales.map(({ name }) => name)],
      ...[sales.map(({ requestHash }) => requestHash), sales.map(({ answer }) => answer)],
      ...[header, sign(null, Buffer.from(header), privateKey), leaves.join('\n')],
    ],
  })
  head = { height, hash: hash(header) }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
