import { expect, test } from 'vitest'
import {
  type Asked,
  ask,
  createFundedBuyer,
  depositing,
  list,
  quote,
  readBalance,
} from '../support/buyer.ts'
import { createData } from '../support/data.ts'
import { type Market, openMarket, readEarnings, setPrices } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestApp, TestReply } from '../support/service.ts'
import { startUpstream } from '../support/upstream.ts'

/** A minute allows one sale of an account that does not pay for its entry. */
const most = 1

withService(
  (service) => {
    /** An application that has money, for its keys to spend. */
    const openPayer = async () => {
      const app = await service().createApp()
      const payer = await createFundedBuyer(service())
      const prepaid = await payer.buy(service(), {
        ...{ method: 'POST', path: `/api/apps/${app.appId}/wallet/deposit` },
        ...{ raw: JSON.stringify({ amount: '100000' }), headers: app.headers },
      })
      expect(prepaid.status, prepaid.text).toBe(200)
      return app
    }
    const createKey = async (app: TestApp) => {
      const { body } = await service().request('POST', `/api/apps/${app.appId}/keys`, {
        headers: app.headers,
        body: { permissions: ['Pay'], name: 'agent' },
      })
      return { 'x-agent-key': String(body.key) }
    }
    const openPriced = (amount: string) => openMarket(service(), { price: { per_access: amount } })
    const read = ({ root }: Market, limit = 3): Asked => list({ root, limit })
    const useUp = async (buy: () => Promise<TestReply>) => {
      const first = await buy()
      expect(first.status, first.text).toBe(200)
      return buy()
    }
    const expectRefused = (reply: TestReply) => {
      expect(reply.status, reply.text).toBe(429)
      expect(reply.body).toMatchObject({ code: 'RATE_LIMITED', details: { limit: 'payment' } })
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    }

    test('customers behind the key of one application have a rate of cheap sales each, by the balance that pays, and it refuses nothing else', async () => {
      const [shop, one, other] = [await service().createApp(), await openPayer(), await openPayer()]
      const [cheap, dear, free] = [
        await openPriced('4'),
        await openPriced('50'),
        await openMarket(service()),
      ]
      const key = await createKey(one)
      const buy = (market: Market, by: Readonly<Record<string, string>>) =>
        ask(service(), read(market), { ...shop.headers, ...by })
      expectRefused(await useUp(() => buy(cheap, key)))
      const before = await readEarnings(service(), one)
      // One balance has one rate, whatever key it is spent by, alone or not.
      expectRefused(await buy(cheap, await createKey(one)))
      expectRefused(await ask(service(), read(cheap), key))
      expect(await readEarnings(service(), one)).toBe(before)
      expect((await buy(free, key)).status).toBe(200)
      expect((await buy(dear, key)).status).toBe(200)
      expect((await buy(cheap, await createKey(other))).status).toBe(200)
      const buyer = await createFundedBuyer(service())
      const paid = await buy(dear, await buyer.payV2(await quote(service(), read(dear))))
      expect(paid.status, paid.text).toBe(200)
    })

    test('where the answer decides what is paid, its rows decide whether the sale is cheap, and a refused one takes nothing', async () => {
      const payer = await openPayer()
      const key = await createKey(payer)
      const plain = await openMarket(service(), { price: { per_row: '20' } })
      const byUse = await openMarket(service(), { price: { per_row: '20' } })
      const tiers = [{ above: 1_000, amount: '10' }]
      await setPrices(service(), byUse, [
        { operation: 'read', model: 'per_row', amount: '20', tiers },
      ])
      const buyOne = ({ root }: Market) =>
        ask(service(), list({ root, limit: 5, find: { id: { is: 'c0' } } }), key)
      expectRefused(await useUp(() => buyOne(plain)))
      const before = await readEarnings(service(), payer)
      expectRefused(await buyOne(plain))
      expectRefused(await buyOne(byUse))
      expect(await readEarnings(service(), payer)).toBe(before)
      for (const market of [plain, byUse]) {
        const reply = await ask(service(), read(market, 5), key)
        expect(reply.status, reply.text).toBe(200)
      }
      expect(await readEarnings(service(), payer)).toBe(before - 200n)
    })

    test('a cheap write is refused before it is made', async () => {
      const key = await createKey(await openPayer())
      const market = await openMarket(service())
      await setPrices(service(), market, [{ operation: 'write', model: 'per_record', amount: '4' }])
      let n = 0
      const write = () => {
        n += 1
        const data = [{ id: `own-${n}`, name: 'Own' }]
        const raw = JSON.stringify({ root: market.root, data })
        const headers = { ...market.headers, ...key }
        return ask(service(), { method: 'POST', path: '/store?wait=true', raw, headers })
      }
      expectRefused(await useUp(write))
      const at = `/api/apps/${market.appId}/collections/${market.collection}/records`
      const own = async (id: string) =>
        (await service().request('GET', `${at}/${id}`, { headers: market.headers })).status
      expect([await own(`own-${n - 1}`), await own(`own-${n}`)]).toEqual([200, 404])
    })

    test('what a seller`s own API does is not asked for if it may be cheap', async () => {
      const upstream = await startUpstream()
      const key = await createKey(await openPayer())
      const seller = await createData(service())
      const define = async (name: string, price: object) => {
        const body = { name, upstream: { url: upstream.url }, price }
        const made = await seller.call('POST', '/api-collections', body)
        expect(made.status, made.text).toBe(201)
      }
      await define('cheap', { per_access: '4' })
      await define('by-kb', { per_kb: '100' })
      await define('dear', { per_row: '50' })
      const buy = (name: string) => {
        const path = `/api/apps/${seller.appId}/api-collections/${name}/data`
        return ask(service(), { method: 'GET', path }, key)
      }
      expectRefused(await useUp(() => buy('cheap')))
      expectRefused(await buy('by-kb'))
      expect(upstream.got).toHaveLength(1)
      const bought = await buy('dear')
      expect(bought.status, bought.text).toBe(200)
      upstream.close()
    })

    test('a balance that payments in requests are covered by has one rate, from whatever addresses', async () => {
      const [cheap, dear] = [await openPriced('4'), await openPriced('50')]
      const buyer = await createFundedBuyer(service(), 10_000n)
      const paid = await buyer.buy(service(), depositing(buyer.address, '10000'))
      expect(paid.status, paid.text).toBe(200)
      let n = 0
      const buy = async (market: Market) => {
        n += 1
        const header = await buyer.payV2(await quote(service(), read(market)))
        return ask(service(), read(market), { ...header, 'x-forwarded-for': `192.0.2.${n}` })
      }
      expectRefused(await useUp(() => buy(cheap)))
      const before = await readBalance(service(), buyer.address)
      expectRefused(await buy(cheap))
      expect((await buy(dear)).status).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(before - 50n)
    })
  },
  {
    devnet: true,
    config: {
      rateLimits: { payment: most },
      trustProxy: ['127.0.0.1'],
      allowedUpstreams: [{ host: '127.0.0.1', port: undefined }],
    },
  },
)
