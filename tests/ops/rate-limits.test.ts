import { setTimeout as wait } from 'node:timers/promises'
import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import type { Config } from '../../packages/server/src/config/config.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import {
  type Asked,
  ask,
  createFundedBuyer,
  depositing,
  list,
  makeBuyer,
  quote,
  readBalance,
} from '../support/buyer.ts'
import { createData } from '../support/data.ts'
import { type Market, openMarket, setPrices } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

type Settings = Config['rateLimits'] & {
  readonly devnet?: boolean
  readonly trustProxy?: Config['trustProxy']
}

/** Each test has a service with limits of its own, so that no test uses up another's. */
function limited(
  title: string,
  { trustProxy = [], devnet = false, ...rateLimits }: Settings,
  work: (service: TestService) => Promise<void>,
): void {
  describe('rate limits', () =>
    withService(
      (service) => {
        test(title, () => work(service()))
      },
      { devnet, config: { rateLimits, trustProxy, registration: 'open' } },
    ))
}

function expectRefused(reply: TestReply, limit: string): void {
  expect(reply.status, reply.text).toBe(429)
  expect(reply.body).toMatchObject({
    code: 'RATE_LIMITED',
    details: { limit },
    request_id: reply.headers.get('x-request-id'),
  })
  const seconds = reply.headers.get('retry-after') ?? ''
  expect(seconds).toMatch(/^[1-9]\d*$/)
  expect(reply.body.details.retry_after_seconds).toBe(Number(seconds))
}

const from = (address: string) => ({ 'x-forwarded-for': address })
const proxied = { trustProxy: ['127.0.0.1'] }

async function until(
  status: number,
  request: () => Promise<TestReply>,
  tries = 200,
): Promise<TestReply> {
  for (let n = 0; n < tries; n++) {
    const reply = await request()
    if (reply.status === status) return reply
  }
  throw new Error(`no ${status} in ${tries} tries`)
}

limited(
  'an address without a key gets its quota, then 429 until it is there again',
  { address: 20 },
  async (service) => {
    const app = await service.createApp()
    const path = `/api/apps/${app.appId}`
    const first = await service.request('GET', path)
    expect(first.status).toBe(200)
    expect(first.headers.get('ratelimit-policy')).toBe('"address";q=20;w=60')
    expect(first.headers.get('ratelimit')).toMatch(/^"address";r=19;t=3$/)
    const refused = await until(429, () => service.request('GET', path))
    expectRefused(refused, 'address')
    expect(refused.headers.get('ratelimit')).toMatch(/^"address";r=0;t=\d+$/)
    service.world.advance(3_100)
    expect((await service.request('GET', path)).status).toBe(200)
    // Probes and key checks are answered all the time.
    for (const probe of ['/', '/health', '/ready', '/metrics']) {
      const answer = await service.request('GET', probe)
      expect(answer.status).toBe(200)
      expect(answer.headers.has('ratelimit')).toBe(false)
    }
    expect((await service.request('GET', `${path}/keys`, { headers: app.headers })).status).toBe(
      200,
    )
    expect((await service.request('GET', '/api/apps', { headers: service.operator })).status).toBe(
      200,
    )
    const { text } = await service.request('GET', '/metrics')
    expect(text).toMatch(/tollbase_rate_limited_total\{limit="address"\} [1-9]/)
  },
)

limited(
  'a key and an application have quotas of their own, which no one else uses up',
  { key: 8, application: 12 },
  async (service) => {
    const app = await service.createApp()
    const path = `/api/apps/${app.appId}/keys`
    const { body } = await service.request('POST', path, {
      headers: app.headers,
      body: { name: 'second', permissions: ['Admin'] },
    })
    const other = { 'x-app-key': body.key }
    const before = await service.request('GET', path, { headers: app.headers })
    expect(before.headers.get('ratelimit-policy')).toBe('"key";q=8;w=60, "application";q=12;w=60')
    expectRefused(
      await until(429, () => service.request('GET', path, { headers: app.headers })),
      'key',
    )
    expect((await service.request('GET', path, { headers: other })).status).toBe(200)
    expectRefused(
      await until(429, () => service.request('GET', path, { headers: other })),
      'application',
    )
    const neighbour = await service.createApp()
    const there = `/api/apps/${neighbour.appId}/keys`
    expect((await service.request('GET', there, { headers: neighbour.headers })).status).toBe(200)
  },
)

limited(
  'a new application, which is a chain for good, costs its address what 500 requests do',
  { address: 1000 },
  async (service) => {
    const create = async (by: ReturnType<typeof makeTestWallet>) => {
      const request = { method: 'POST', path: '/api/apps', body: JSON.stringify({ name: 'One' }) }
      const timestamp = Math.floor(service.world.now() / 1000)
      const headers = await by.sign({ origin: service.url, ...request, timestamp })
      return service.request('POST', request.path, { headers, raw: request.body })
    }
    expect((await create(makeTestWallet())).status).toBe(201)
    expectRefused(await create(makeTestWallet()), 'address')
  },
)

limited(
  'wrong keys cost their address most, and never hold up a good key',
  { address: 100 },
  async (service) => {
    const app = await service.createApp()
    const path = `/api/apps/${app.appId}/keys`
    const guess = () => service.request('GET', path, { headers: { 'x-app-key': 'app_guess' } })
    for (let n = 0; n < 10; n++) expect((await guess()).status).toBe(401)
    expectRefused(await guess(), 'address')
    expect((await service.request('GET', path, { headers: app.headers })).status).toBe(200)
    // A missing key where one is needed is a failed try too.
    service.world.advance(60_000)
    for (let n = 0; n < 10; n++) expect((await service.request('GET', path)).status).toBe(401)
    expectRefused(await service.request('GET', path), 'address')
  },
)

limited(
  'a wallet`s signature is dear to check, so it costs more than a plain request',
  { address: 22 },
  async (service) => {
    const own = async () => {
      const path = '/api/apps'
      const timestamp = Math.floor(service.world.now() / 1000)
      const asked = { origin: service.url, method: 'GET', path, timestamp }
      // Each signature counts once, so each is from another wallet.
      const headers = await makeTestWallet().sign(asked)
      return service.request('GET', path, { headers })
    }
    expect((await own()).status).toBe(200)
    expect((await own()).status).toBe(200)
    expectRefused(await own(), 'address')
  },
)

limited(
  'all of an IPv6 host`s addresses are one, and behind a trusted proxy the client`s address counts',
  { address: 3, ...proxied },
  async (service) => {
    const ask = (address: string) => service.request('GET', '/docs', { headers: from(address) })
    expect((await ask('2001:db8:1:1::1')).status).toBe(200)
    expectRefused(await ask('2001:db8:1:1:ffff::2'), 'address')
    expect((await ask('2001:db8:1:2::1')).status).toBe(200)
    expect((await ask('192.0.2.1')).status).toBe(200)
    expectRefused(await ask('::ffff:192.0.2.1'), 'address')
    // The last address that the trusted proxy itself saw counts, not the one that a client wrote before it.
    expectRefused(await ask('198.51.100.9, 192.0.2.1'), 'address')
  },
)

limited(
  'without a trusted proxy X-Forwarded-For is not believed',
  { address: 3 },
  async (service) => {
    const ask = (address: string) => service.request('GET', '/docs', { headers: from(address) })
    expect((await ask('192.0.2.1')).status).toBe(200)
    expectRefused(await ask('192.0.2.2'), 'address')
  },
)

limited(
  'visitors from many addresses share the quota of an application, whose keys do not',
  { visitors: 5, ...proxied },
  async (service) => {
    const market = await openMarket(service)
    const asked = { root: market.root, limit: 1 }
    let n = 0
    const visit = () => {
      n += 1
      return service.request('POST', '/list', { body: asked, headers: from(`192.0.2.${n % 250}`) })
    }
    for (let visits = 0; visits < 5; visits++) expect((await visit()).status).toBe(200)
    expectRefused(await visit(), 'visitors')
    const own = await service.request('POST', '/list', { body: asked, headers: market.headers })
    expect(own.status).toBe(200)
    const other = await openMarket(service)
    const there = await service.request('POST', '/list', { body: { root: other.root, limit: 1 } })
    expect(there.status).toBe(200)
  },
)

const read = (market: Market): Asked => list({ root: market.root, limit: 3 })

limited(
  'a payment that buys is never held up, but repeats and failures are',
  { address: 120, payment: 4, devnet: true },
  async (service) => {
    const market = await openMarket(service, { price: { per_row: '100' } })
    const buyer = await createFundedBuyer(service)
    const asked = read(market)
    const required = await quote(service, asked)
    expectRefused(await until(429, () => ask(service, asked)), 'address')
    // The purchases are more than the quota: each that bought something is given back.
    for (let n = 0; n < 6; n++) {
      const bought = await ask(service, asked, await buyer.payV2(required))
      expect(bought.status, bought.text).toBe(200)
    }
    const paid = await buyer.payV2(required)
    const first = await ask(service, asked, paid)
    expect(first.headers.has('idempotent-replayed')).toBe(false)
    // An answer that was bought before is work without money.
    const again = await ask(service, asked, paid)
    expect(again.status).toBe(200)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    const broke = makeBuyer()
    const failed = await until(
      429,
      async () => ask(service, asked, await broke.payV2(required)),
      10,
    )
    expectRefused(failed, 'payment')
  },
)

limited(
  'a sale of which the platform gets nothing counts as a payment that buys nothing',
  { payment: 5, devnet: true },
  async (service) => {
    const market = await openMarket(service, { price: { per_access: '4' } })
    const cheap = read(market)
    const buyer = await createFundedBuyer(service, 10_000n)
    const buy = async () => ask(service, cheap, await buyer.payV2(await quote(service, cheap)))
    const first = await buy()
    expect(first.status, first.text).toBe(200)
    expectRefused(await until(429, buy, 10), 'payment')
  },
)

limited(
  'the same holds out of a balance, and for a share that is less than an entry costs',
  { payment: 5, devnet: true },
  async (service) => {
    const most = { price: { per_access: '49' } }
    const [cheap, dear] = [await openMarket(service, most), await openMarket(service)]
    await setPrices(service, dear, [{ operation: 'read', model: 'per_access', amount: '50' }])
    const buyer = await createFundedBuyer(service, 10_000n)
    const paid = await buyer.buy(service, depositing(buyer.address, '10000'))
    expect(paid.status, paid.text).toBe(200)
    const buy = async (market: Market) =>
      ask(service, read(market), await buyer.payV2(await quote(service, read(market))))
    for (let n = 0; n < 8; n++) expect((await buy(dear)).status).toBe(200)
    const first = await buy(cheap)
    expect(first.status, first.text).toBe(200)
    expectRefused(await until(429, () => buy(cheap), 10), 'payment')
    expect(await readBalance(service, buyer.address)).toBe(10_000n - 8n * 50n - 5n * 49n)
  },
)

limited(
  'a key that pays out of a balance for what brings the platform nothing has the rate of payments, and no other one',
  { payment: 5, devnet: true },
  async (service) => {
    const [cheap, free] = [
      await openMarket(service, { price: { per_access: '4' } }),
      await openMarket(service),
    ]
    const payer = await createFundedBuyer(service)
    const prepaid = await payer.buy(service, {
      ...{ method: 'POST', path: `/api/apps/${cheap.appId}/wallet/deposit` },
      ...{ raw: JSON.stringify({ amount: '1000' }), headers: cheap.headers },
    })
    expect(prepaid.status, prepaid.text).toBe(200)
    const { body } = await service.request('POST', `/api/apps/${cheap.appId}/keys`, {
      headers: cheap.headers,
      body: { permissions: ['Pay'], name: 'agent' },
    })
    const buy = (market: Market) => ask(service, read(market), { 'x-agent-key': body.key })
    for (let n = 0; n < 12; n++) expect((await buy(free)).status).toBe(200)
    const first = await buy(cheap)
    expect(first.status, first.text).toBe(200)
    expectRefused(await until(429, () => buy(cheap), 12), 'payment')
  },
)

limited(
  'what cannot be read as a payment is none, and one that buys nothing takes from its address too',
  { address: 30, payment: 20, devnet: true },
  async (service) => {
    const market = await openMarket(service)
    const priced = await openMarket(service, { price: { per_row: '100' } })
    const free = read(market)
    const garbage = await ask(service, free, { 'x-payment': 'no payment at all' })
    expect(garbage.status).toBe(200)
    expect(garbage.headers.get('ratelimit-policy')).toBe('"address";q=30;w=60')
    const required = await quote(service, read(priced))
    const unneeded = await makeBuyer().payV2(required)
    for (let n = 0; n < 20; n++) expect((await ask(service, free, unneeded)).status).toBe(200)
    expectRefused(await ask(service, free, unneeded), 'payment')
    expectRefused(await until(429, () => ask(service, free), 12), 'address')
  },
)

limited(
  'a 429 takes nothing of a payment: it buys once the quota is there again',
  // One more in ten seconds: room between the refusal of one payment and the next.
  { payment: 6, devnet: true },
  async (service) => {
    const market = await openMarket(service, { price: { per_row: '100' } })
    const buyer = await createFundedBuyer(service)
    const asked = read(market)
    const header = await buyer.payV2(await quote(service, asked))
    const broken = await makeBuyer().payV2(await quote(service, asked))
    await until(429, () => ask(service, asked, broken))
    const refused = await ask(service, asked, header)
    expectRefused(refused, 'payment')
    await wait(refused.body.details.retry_after_seconds * 1000)
    const bought = await ask(service, asked, header)
    expect(bought.status, bought.text).toBe(200)
    expect(bought.headers.has('idempotent-replayed')).toBe(false)
  },
)

limited(
  'however many addresses ask, only so much work without a key is done at once, and every place is free again, also of clients that hang up',
  { anonymous_in_flight: 2 },
  async (service) => {
    const market = await openMarket(service)
    const other = await openMarket(service)
    const { schema, data } = await service.running.service.tenants.load(market.appId)
    const { table = '' } = data.catalog.byName.get(market.collection) ?? {}
    const abort = new AbortController()
    const body = JSON.stringify({ root: market.root, limit: 1 })
    const visit = () => service.request('POST', '/list', { raw: body })
    await service.database.transaction(async (tx) => {
      // Reads wait for the lock, so each that gets a place keeps it.
      await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
      const visits = Array.from({ length: 3 }, () =>
        fetch(`${service.url}/list`, { method: 'POST', body, signal: abort.signal }),
      )
      for (const one of visits) one.catch(() => undefined)
      expect((await Promise.race(visits)).status).toBe(429)
      expectRefused(await visit(), 'anonymous_in_flight')
      const own = { body: { root: other.root, limit: 1 }, headers: other.headers }
      expect((await service.request('POST', '/list', own)).status).toBe(200)
      abort.abort()
    })
    // Every place is free again once the work is done, whether it succeeded or not.
    await until(200, visit)
    for (let n = 0; n < 5; n++)
      expect((await service.request('POST', '/list', { raw: '{' })).status).toBe(400)
    expect((await visit()).status).toBe(200)
  },
)

limited(
  'a body that is too large to be read is refused by its head alone',
  { address: 1 },
  async (service) => {
    await service.request('GET', '/docs')
    const raw = `{"root":"a::b","pad":"${'x'.repeat(limits.bodyBytesMax)}"}`
    // 413 would mean that its body was looked at.
    expectRefused(await service.request('POST', '/list', { raw }), 'address')
  },
)

limited(
  'a body costs by its length, and a statement more than other bodies',
  { address: 120 },
  async (service) => {
    const left = async (path: string, body: object) => {
      await service.request('POST', path, { body })
      // The cost of a body is known once the body is here, and the next answer states it.
      const { headers } = await service.request('GET', '/api/apps/not-there')
      return Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])
    }
    const start = await left('/list', { root: 'not::there' })
    const list = await left('/list', { root: 'not::there', pad: 'x'.repeat(128 * 1024) })
    // Some of it comes back with the time that passes.
    expect(start - list).toBeGreaterThanOrEqual(4)
    expect(start - list).toBeLessThan(12)
    const statement = `SELECT ${'x'.repeat(60 * 1024)} FROM not::there`
    expect(list - (await left('/query/sql', { sql: statement }))).toBeGreaterThanOrEqual(40)
  },
)

limited(
  'a grant of a wallet is kept for good, and costs by its length',
  { address: 6_000 },
  async (service) => {
    const app = await service.createApp()
    const left = async (targets: readonly string[]) => {
      const body = { grantee: 'an agent', spend_limit: '1', allowed_targets: targets }
      const path = `/api/apps/${app.appId}/authorizations`
      await askSigned(service, makeTestWallet(), { method: 'POST', path, body })
      const { headers } = await service.request('GET', '/api/apps/not-there')
      return Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])
    }
    const few = await left(['maps'])
    const many = await left(Array.from({ length: 500 }, (_, at) => `app-${'x'.repeat(50)}-${at}`))
    // 30 KB, of which the service would otherwise keep gigabytes a day for one address.
    expect(few - many).toBeGreaterThan(1_000)
    expect(many - (await left(['maps']))).toBeLessThan(200)
  },
)

limited(
  'an address pays for the queries that are read for it, and not for those that are in memory',
  { address: 120 },
  async (service) => {
    const data = await createData(service)
    await data.publish('open', [{ id: 'a' }])
    const names = Array.from({ length: 3 }, (_, at) => `q${at}`)
    const tests = Array.from({ length: 16 }, (_, at) => `id <> '${at}${'x'.repeat(900)}'`)
    const text = `SELECT id FROM "${data.appId}"::open WHERE ${tests.join(' AND ')}`
    for (const name of names) {
      const defined = await data.call('POST', '/queries', { name, sql: text })
      expect(defined.status, defined.text).toBe(201)
    }
    const readLeft = async (path: string) => {
      const { status, headers } = await service.request('GET', path)
      expect(status).toBe(200)
      return Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])
    }
    const list = `/api/apps/${data.appId}/queries`
    const first = await readLeft(list)
    const second = await readLeft(list)
    expect(first - second).toBeGreaterThanOrEqual(20)
    // A list costs five by itself.
    expect(second - (await readLeft(list))).toBeLessThanOrEqual(5)
    const run = `/api/queries/${data.appId}/q0/data`
    const before = await readLeft(run)
    expect(before - (await readLeft(run))).toBeGreaterThanOrEqual(5)
  },
)
