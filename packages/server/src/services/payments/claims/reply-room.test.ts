import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Queryable } from '../../../database/queryable.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import type { TestDatabase } from '../../../database/testing.ts'
import { Ledger } from '../../../projections/ledger.ts'
import { createAccountDatabase } from '../payment-tables.test-support.ts'
import { encodeSoldFile, soldFileType } from '../replies/sold-file.ts'
import { buildReadyState } from './claim-tables.ts'
import { dropReplies, listNamedByReplies } from './reply-store.ts'

let store: TestDatabase
let made = 0
const kib = 1024
const bytesMax = 400 * kib

beforeAll(async () => {
  store = await createAccountDatabase([...buildReadyState(), ...new Ledger().tables('system')])
})

afterAll(() => store?.drop())

beforeEach(async () => {
  await store.database.execute(sql`DELETE FROM operations.kept_reply`)
  await store.database.execute(sql`DELETE FROM operations.claim`)
})

type Kept = {
  readonly payer: string
  readonly app?: string
  readonly state?: string
  readonly body?: Buffer
  readonly contentType?: string
  readonly sale?: string
}

/** Keeps an answer, which is newer than those before it. */
async function keep(id: string, kibs: number, by: Kept) {
  const { payer, app = 'shop', state = 'delivered' } = by
  const { body = Buffer.alloc(kibs * kib), contentType = null, sale = null } = by
  const settledBy = state === 'delivered' ? '0x1' : null
  await store.database.execute(sql`
    INSERT INTO operations.claim (identity, id, request_hash, app, operation, amount, cap, valid_before, payment, state, settled_by, created_at_ms)
    VALUES (${`n/a/${payer}/${id}`}, ${id}, '', ${app}, 'list', 1, 1, 1, '{}', ${state}, ${settledBy}::text, 0)`)
  made++
  await store.database.execute(sql`
    INSERT INTO operations.kept_reply (payment_id, status, body, content_type, sale, expires_at_ms)
    VALUES (${id}, 200, ${body}, ${contentType}::text, ${sale}::text, ${1_000 + made}::int8)`)
}

async function drop(nowMs = 1_000) {
  await dropReplies(store.database, { nowMs, bytesMax })
  const rows = await store.database.query<{ payment_id: string }>(
    sql`SELECT payment_id FROM operations.kept_reply ORDER BY expires_at_ms`,
  )
  return rows.map((row) => row.payment_id)
}

/** Keeps so many answers of 50 KiB each. */
async function keepMany(name: string, count: number, by: (at: number) => Kept) {
  for (let at = 1; at <= count; at++) await keep(`${name}${at}`, 50, by(at))
}

test('a buyer of many answers drives out its own oldest ones, and none of others who bought of the same seller', async () => {
  await keep('first', 60, { payer: 'honest' })
  await keepMany('many', 20, () => ({ payer: 'stranger' }))
  await keep('last', 60, { payer: 'other' })
  // 280 KiB are left for the stranger.
  expect(await drop()).toEqual(['first', 'many16', 'many17', 'many18', 'many19', 'many20', 'last'])
})

test('a buyer with many wallets, or many answers that are not paid for yet, drives out nobody who bought of another seller', async () => {
  await keep('first', 100, { payer: 'honest' })
  await keepMany('wallet', 40, (at) => ({ payer: `wallet${at}`, app: 'cheap' }))
  await keepMany('unpaid', 20, (at) => ({ payer: `unpaid${at}`, app: 'cheap', state: 'ready' }))
  const left = await drop()
  expect(left).toContain('first')
  expect(left.filter((id) => id.startsWith('unpaid'))).toHaveLength(20)
})

test('answers that wait for their money take nothing of the room of those that are bought', async () => {
  await keepMany('bought', 8, () => ({ payer: 'honest' }))
  await keepMany('unpaid', 20, (at) => ({ payer: `unpaid${at}`, state: 'ready' }))
  expect(await drop()).toHaveLength(28)
})

test('of many sellers, or buyers of one, each has as much as the others, and what one does not need is for them', async () => {
  await keep('small', 10, { payer: 'a' })
  await keepMany('one', 4, () => ({ payer: 'b' }))
  await keepMany('two', 10, () => ({ payer: 'c' }))
  await keepMany('other', 10, () => ({ payer: 'c', app: 'other' }))
  // 200 KiB are for each seller; of these 10 for the one buyer, and 95 for each of the others.
  expect(await drop()).toEqual(['small', 'one4', 'two10', 'other7', 'other8', 'other9', 'other10'])
})

test('an answer that is larger than the share of its buyer goes before its smaller ones', async () => {
  await keep('small', 50, { payer: 'a' })
  await keep('large', 300, { payer: 'a' })
  await keepMany('more', 10, () => ({ payer: 'b' }))
  // 200 KiB are for each.
  expect(await drop()).toEqual(['small', 'more7', 'more8', 'more9', 'more10'])
})

test('sold files and other short answers are kept for their time, whatever others buy', async () => {
  const contentType = 'x/'.padEnd(255, 'y')
  const file = { folder: 2 ** 31, sha256: 'f'.repeat(64), size: 2 ** 50, contentType }
  const body = encodeSoldFile({ ...file, filename: '\u0000'.repeat(255) })
  for (let at = 1; at <= 200; at++)
    await keep(`file${at}`, 0, { payer: 'a', body, contentType: soldFileType })
  await keep('last', 500, { payer: 'a' })
  const left = await drop()
  expect(left).not.toContain('last')
  expect(left).toHaveLength(200)
})

test('an answer goes once its time is over, or nobody can pay for it any more, and stays while it is owed', async () => {
  await keep('old', 1, { payer: 'a' })
  await keep('owed', 1, { payer: 'a', state: 'owed', sale: '{}' })
  await keep('void', 1, { payer: 'a', state: 'void', sale: '{}' })
  await keep('ready', 1, { payer: 'a', state: 'ready', sale: '{}' })
  expect(await drop()).toEqual(['old', 'owed', 'ready'])
  expect(await drop(1_000_000)).toEqual(['owed', 'ready'])
})

test('files that answers name are found by an index, each in its own folder, whatever the names of files look like', async () => {
  const hashes = ['a', 'b', 'c', 'd'].map((one) => one.repeat(64))
  const [first = '', second = '', third = '', fourth = ''] = hashes
  const sell = (id: string, folder: number, [sha256, filename]: readonly [string, string]) =>
    keep(id, 0, {
      payer: 'a',
      body: encodeSoldFile({ folder, sha256, size: 1, contentType: 'text/plain', filename }),
      contentType: soldFileType,
    })
  await sell('one', 1, [first, 'a'])
  await sell('again', 1, [first, 'a'])
  await sell('other', 2, [second, `x","folder":1,"sha256":"${third}"\\u00e9\u0000`])
  const ownType = { payer: 'a', contentType: 'application/json' }
  await keep('json', 0, { ...ownType, body: Buffer.from(`{"folder":1,"sha256":"${fourth}"}`) })
  const asked: SqlStatement[] = []
  const database: Queryable = {
    ...store.database,
    query: (statement, ...more) => {
      asked.push(statement)
      return store.database.query(statement, ...more)
    },
  }
  expect(await listNamedByReplies(database, { folder: 1, hashes })).toEqual([first])
  expect(await listNamedByReplies(database, { folder: 2, hashes })).toEqual([second])
  const [statement = sql.empty] = asked
  const plan = await store.database.transaction(async (tx) => {
    await tx.execute(sql`SET LOCAL enable_seqscan = off`)
    return tx.query(sql`EXPLAIN ${statement}`)
  })
  expect(JSON.stringify(plan)).toContain('kept_reply_file')
})
