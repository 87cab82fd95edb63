import { describe, expect, test } from 'vitest'
import type { Config } from '../../packages/server/src/config/config.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type Buyer, createFundedBuyer, depositing, readBalance } from '../support/buyer.ts'
import { createData } from '../support/data.ts'
import { type Market, openMarket } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestApp, TestReply, TestService } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

/**
 * A wallet needs nobody's leave to grant through an application. So the key of its authorization pays, and is none of
 * that application's keys.
 */
function serving(
  title: string,
  config: Partial<Config>,
  work: (service: TestService) => Promise<void>,
): void {
  describe('the key of a wallet`s authorization', () =>
    withService((service) => void test(title, () => work(service())), { devnet: true, config }))
}

type Headers = Readonly<Record<string, string>>

async function grant(
  service: TestService,
  app: TestApp,
  wallet = makeTestWallet(),
): Promise<string> {
  const reply = await askSigned(service, wallet, {
    ...{ method: 'POST', path: `/api/apps/${app.appId}/authorizations` },
    body: { grantee: 'an agent', spend_limit: '100000' },
  })
  expect(reply.status, reply.text).toBe(201)
  return reply.body.user_key
}

/** The same by an Admin key, which spends from the application's own balance. */
async function grantOwn(service: TestService, app: TestApp): Promise<string> {
  const path = `/api/apps/${app.appId}/authorizations`
  const body = { grantee: 'an agent', spend_limit: '100000' }
  const reply = await service.request('POST', path, { body, headers: app.headers })
  expect(reply.status, reply.text).toBe(201)
  return reply.body.user_key
}

async function createDepositor(service: TestService): Promise<Buyer> {
  const buyer = await createFundedBuyer(service)
  const reply = await buyer.buy(service, depositing(buyer.address, '100000'))
  expect(reply.status, reply.text).toBe(200)
  return buyer
}

const user = (key: string): Headers => ({ 'x-user-key': key })
const from = (address: string): Headers => ({ 'x-forwarded-for': address })
const read = (service: TestService, market: Market, headers: Headers) =>
  service.request('POST', '/list', { headers, body: { root: market.root, limit: 1 } })
const listLimits = ({ headers }: TestReply) =>
  [...(headers.get('ratelimit-policy') ?? '').matchAll(/"(\w+)"/g)].map(([, name]) => name)

serving(
  'takes from the rates of its address, and nothing from those of the application that it names',
  { rateLimits: { address: 1_000, payment: 4, application: 5 } },
  async (service) => {
    const [free, priced] = [
      await openMarket(service),
      await openMarket(service, { price: { per_access: '100' } }),
    ]
    const buyer = await createDepositor(service)
    const broke = user(await grant(service, free))
    const plain = await service.request('GET', `/api/apps/${free.appId}`, { headers: broke })
    expect(plain.status, plain.text).toBe(200)
    expect(listLimits(plain)).toEqual(['address'])
    const own = user(await grantOwn(service, free))
    const counted = await service.request('GET', '/docs', { headers: own })
    expect(listLimits(counted)).toEqual(['application'])
    // A purchase with it is never held up, as by any other payment.
    const paying = user(await grant(service, free, makeTestWallet(buyer.account)))
    for (let n = 0; n < 8; n++) {
      const bought = await read(service, priced, paying)
      expect(bought.status, bought.text).toBe(200)
    }
    // A read that buys nothing counts as a payment does, and beyond that as a visitor's request.
    const limited = new Set<string>()
    for (let n = 0; n < 8; n++) {
      const reply = await read(service, free, broke)
      expect(reply.status, reply.text).toBe(200)
      limited.add(listLimits(reply).join())
    }
    expect([...limited]).toEqual(['payment', 'address'])
    // Beside a key of an application it is that one's request; the application's keys have all that is theirs.
    const beside = await read(service, free, { ...free.headers, ...broke })
    expect(beside.status, beside.text).toBe(200)
    expect(listLimits(beside)).toContain('application')
    expect(listLimits(beside)).not.toContain('address')
  },
)

serving(
  'gives no right, wherever it is sent, and leaves a signature beside it as it is',
  { accessLog: true },
  async (service) => {
    const app = await service.createApp()
    const wallet = makeTestWallet()
    const key = await grant(service, app, wallet)
    for (const path of ['/health', `/api/apps/${app.appId}/stats`]) {
      const sent = await service.request('GET', path, { headers: { 'x-app-key': key } })
      expect([sent.status, sent.body.error], path).toEqual([
        401,
        `This key is of a wallet's authorization: it pays, in X-User-Key, and gives no rights`,
      ])
    }
    const alone = await service.request('GET', `/api/apps/${app.appId}/stats`, {
      headers: user(key),
    })
    expect(alone.status).toBe(401)
    const signed = { method: 'GET', path: `/api/apps/${app.appId}/authorizations` }
    const beside = await askSigned(service, wallet, { ...signed, headers: user(key) })
    expect(beside.status, beside.text).toBe(200)
    expect(beside.body.authorizations).toHaveLength(1)
  },
)

serving(
  'runs a query as often as its address may, through however many applications it was granted',
  { trustProxy: ['127.0.0.1'] },
  async (service) => {
    const [data, shop, other] = [
      await createData(service),
      await service.createApp(),
      await service.createApp(),
    ]
    await data.publish('open', [{ id: 'a' }])
    const text = `SELECT id FROM "${data.appId}"::open`
    const rate = { requests: 1, window_seconds: 3_600 }
    const defined = await data.call('POST', '/queries', { name: 'q', sql: text, rate_limit: rate })
    expect(defined.status, defined.text).toBe(201)
    const run = async (headers: Headers, address = '192.0.2.1') => {
      const path = `/api/queries/${data.appId}/q/data`
      return (await service.request('GET', path, { headers: { ...from(address), ...headers } }))
        .status
    }
    expect(await run(user(await grant(service, shop)))).toBe(200)
    expect(await run(user(await grant(service, shop)))).toBe(429)
    expect(await run(user(await grant(service, other)))).toBe(429)
    expect(await run({}, '192.0.2.2')).toBe(200)
    expect(await run(shop.headers)).toBe(200)
    expect(await run(other.headers)).toBe(200)
  },
)

serving(
  'has named requests of its own, by which it buys once from whatever address',
  { trustProxy: ['127.0.0.1'] },
  async (service) => {
    const market = await openMarket(service, { price: { per_access: '100' } })
    const rule = { target: { collection: market.collection }, operation: 'read' }
    const priced = await service.request('PUT', `/api/apps/${market.appId}/pricing`, {
      headers: market.headers,
      body: { rules: [{ ...rule, model: 'time_pass', amount: '500', hours: 24 }] },
    })
    expect(priced.status, priced.text).toBe(200)
    const through = await service.createApp()
    const buyer = await createDepositor(service)
    const key = await grant(service, through, makeTestWallet(buyer.account))
    const buy = (address: string, headers: Headers = user(key)) =>
      service.request('POST', `/api/apps/${market.appId}/passes`, {
        headers: { ...headers, ...from(address), 'idempotency-key': 'one-pass' },
        body: { target: rule.target, hours: 24 },
      })
    const first = await buy('192.0.2.1')
    expect(first.status, first.text).toBe(200)
    const again = await buy('192.0.2.2')
    expect([again.status, again.text]).toEqual([200, first.text])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    const beside = await buy('192.0.2.1', { ...through.headers, ...user(key) })
    expect(beside.text).toBe(first.text)
    expect(await readBalance(service, buyer.address)).toBe(99_500n)
    const owners = await service.database.query<{ owner: string }>(
      sql`SELECT owner FROM operations.named_request ORDER BY owner`,
    )
    expect(owners).toEqual([{ owner: `payer:wallet:${buyer.address}` }])
  },
)
