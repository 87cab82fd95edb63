import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readConfig } from '../../packages/server/src/config/config.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { getBundle } from '../support/bundle.ts'
import {
  type Asked,
  ask,
  type Buyer,
  createFundedBuyer,
  list,
  type PaymentHeader,
  quote,
  readBalance,
} from '../support/buyer.ts'
import { type Market, openMarket, readEarnings, setPrices } from '../support/market.ts'
import { send, type TestReply, type TestService } from '../support/service.ts'

const kills = 2
const buyers = 6
const operatorKey = 'operator-key-of-the-kill-test'
const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-kill-'))
let child: ChildProcess | undefined
let url = ''

afterAll(async () => {
  await stop('SIGTERM')
  rmSync(dataDir, { recursive: true, force: true })
})

/** Starts the program itself, on the folder that the last one left behind. */
async function start(): Promise<void> {
  const flags = ['serve', '--devnet', '--port', '0', '--data-dir', dataDir]
  const started = spawn(process.execPath, [getBundle('packages/cli/src/main.ts'), ...flags], {
    env: { ...process.env, TOLLBASE_OPERATOR_KEY: operatorKey, TOLLBASE_LOG_LEVEL: 'error' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  child = started
  url = await new Promise<string>((resolve, reject) => {
    let text = ''
    started.stdout?.on('data', (chunk) => {
      text += chunk
      const ready = /tollbase listening on (\S+)/.exec(text)?.[1]
      if (ready !== undefined) resolve(ready)
    })
    started.once('exit', (code) => reject(new Error(`ended with ${code}: ${text}`)))
  })
}

async function stop(signal: NodeJS.Signals): Promise<void> {
  const ending = child
  child = undefined
  if (ending === undefined) return
  const ended = new Promise((resolve) => ending.once('exit', resolve))
  ending.kill(signal)
  await ended
}

const operator = { authorization: `Bearer ${operatorKey}` }

const service: Pick<TestService, 'request' | 'createApp'> = {
  request: (method, path, options = {}) => send(url, { method, path, ...options }),
  createApp: async (id = 'market') => {
    const body = { name: id, app_id: id }
    const reply = await service.request('POST', '/api/apps', { body, headers: operator })
    const { app_key: key, key_hash: keyHash } = reply.body
    return { appId: id, key, keyHash, headers: { 'x-app-key': key } }
  },
}

type Purchase = { asked: Asked; header: PaymentHeader; reply: TestReply | undefined }

/** Buys one thing after the other until told to end; each purchase is noted before it is sent. */
async function shop(
  buyer: Buyer,
  market: Market,
  log: { purchases: Purchase[]; isOver: () => boolean },
): Promise<void> {
  for (let at = 0; !log.isOver(); at++) {
    const isWrite = at % 3 === 2
    const body = isWrite
      ? { root: `${market.appId}::orders`, data: [{ buyer: buyer.address, at }] }
      : { root: market.root, limit: 1 + (at % 5) }
    const asked = isWrite ? { ...list(body), path: '/store', headers: market.headers } : list(body)
    const required = await quote(service, asked).catch(() => undefined)
    if (required === undefined) return
    const purchase: Purchase = { asked, header: await buyer.payV2(required), reply: undefined }
    log.purchases.push(purchase)
    purchase.reply = await ask(service, asked, purchase.header).catch(() => undefined)
    if (purchase.reply === undefined) return
  }
}

/** Repeats a purchase as a client does that never got its answer. */
async function retry({ asked, header }: Purchase): Promise<TestReply> {
  for (let tries = 0; tries < 100; tries++) {
    const reply = await ask(service, asked, header)
    if (reply.status !== 503) return reply
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('a purchase stays pending')
}

test('a service that is killed again and again while it sells delivers what was paid, charges once and writes once', async () => {
  await start()
  const market = await openMarket(service, { price: { per_row: '1000' } })
  const orders = { ...market, collection: 'orders', root: `${market.appId}::orders` }
  const create = { body: { name: 'orders' }, headers: market.headers }
  await service.request('POST', `/api/apps/${market.appId}/collections`, create)
  await setPrices(service, market, [
    { operation: 'read', model: 'per_row', amount: '1000' },
    { target: { collection: 'orders' }, operation: 'write', model: 'per_record', amount: '700' },
  ])
  const people = await Promise.all(Array.from({ length: buyers }, () => createFundedBuyer(service)))
  const purchases: Purchase[] = []
  for (let round = 0; round < kills; round++) {
    let over = false
    const shopping = people.map((one) => shop(one, market, { purchases, isOver: () => over }))
    await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 700))
    await stop('SIGKILL')
    over = true
    await Promise.all(shopping)
    await start()
  }
  const unanswered = purchases.filter(({ reply }) => reply === undefined)
  expect(unanswered.length).toBeGreaterThan(0)
  let due = 0n
  for (const purchase of purchases) {
    const reply = await retry(purchase)
    expect(reply.status, reply.text).toBeLessThan(300)
    if (purchase.reply !== undefined) expect(reply.text).toBe(purchase.reply.text)
    due += purchase.asked.path === '/store' ? 700n : 1000n * BigInt(reply.body.records.length)
  }
  // Prices are whole thousands and hundreds, so no share is rounded.
  expect(await readEarnings(service, market)).toBe((due * 80n) / 100n)
  for (const { address } of people) expect(await readBalance(service, address)).toBe(0n)
  const written = await service.request('POST', '/list', {
    body: { root: orders.root },
    headers: market.headers,
  })
  const stores = purchases.filter(({ asked }) => asked.path === '/store')
  expect(written.body.records).toHaveLength(stores.length)
  await stop('SIGTERM')
  const config = readConfig({ dataDir, port: '0' }, {})
  const report = await audit(config, () => undefined)
  expect(report.difference).toBeUndefined()
  expect(report.equal).toBe(true)
}, 180_000)
