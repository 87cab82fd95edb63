import { expect, test } from 'vitest'
import { type Asked, ask, list, quote } from '../support/buyer.ts'
import { type Market, openMarket } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'

/** Nobody pays here, so the network need not exist. */
const network = {
  network: 'base-sepolia',
  pay_to: `0x${'22'.repeat(20)}`,
  minimum_payment: 1,
  facilitator_url: 'http://127.0.0.1:9',
}

withService(
  (service) => {
    test('a 402 has the same amount and the same form whatever the data', async () => {
      const policy = { price: { per_access: '3', per_row: '5', per_kb: '2' } }
      const full = await openMarket(service(), policy)
      const empty = await openMarket(service(), { ...policy, records: [] })
      const requests = (market: Market): Asked[] => [
        list({ root: market.root, limit: 4 }),
        list({ root: market.root, limit: 4, find: { name: 'Wien' }, sortBy: 'name' }),
        list({ root: market.root, limit: 4, offset: 1000 }),
        record(market, 'c0'),
        record(market, 'c9'),
      ]
      const shown = async (market: Market) => {
        const replies = await Promise.all(requests(market).map((one) => quote(service(), one)))
        return replies.map(toShape)
      }
      expect(await shown(full)).toEqual(await shown(empty))
      const [there, missing] = (await shown(full)).slice(3)
      expect(there).toEqual(missing)
    })

    test('no other way gives outsiders what has a price', async () => {
      const secret = 'only-for-money'
      const market = await openMarket(service(), {
        price: { per_access: '1' },
        records: [{ id: 'k1', name: secret }],
      })
      const prefix = `/api/apps/${market.appId}`
      const collection = `${prefix}/collections/${market.collection}`
      const stranger = await service().createApp()
      const paths = [
        `${collection}`,
        `${collection}?include_stats=true`,
        `${collection}/preview`,
        `${collection}/stats`,
        `${collection}/records/k1`,
        `${collection}/records/k1/history`,
        `${collection}/records/k1/proof`,
        `${collection}/indexes`,
        `${prefix}/collections`,
        `${prefix}/indexes`,
        `${prefix}/tasks`,
        `${prefix}/stats`,
        `${prefix}/pricing`,
        prefix,
        `${prefix}/chain/checkpoint`,
        ...[1, 2, 3].map((height) => `${prefix}/chain/blocks/${height}`),
        ...[1, 2, 3].map((height) => `${prefix}/chain/proof?height=${height}&sequence=0`),
        '/api/apps/system/chain/blocks/1',
      ]
      const outside = [{}, stranger.headers]
      for (const headers of outside) {
        for (const path of paths) {
          const reply = await service().request('GET', path, { headers })
          expect(reply.text, path).not.toContain(secret)
          expect(reply.text, path).not.toContain(
            Buffer.from(secret).toString('base64').slice(0, 16),
          )
          const bare = path.replace('/api/apps', '/apps')
          expect((await service().request('GET', bare, { headers })).text).not.toContain(secret)
        }
        const history = list({ root: market.root, include_history: true, limit: 1 })
        const reply = await ask(service(), { ...history, headers })
        expect([402, 403]).toContain(reply.status)
      }
      for (const headers of outside) {
        for (const part of ['stats', 'records/k1/history', 'records/k1/proof']) {
          const { status } = await service().request('GET', `${collection}/${part}`, { headers })
          expect(status, part).toBe(401)
        }
      }
    })

    test('a quote tells nobody of a collection that they may not know of', async () => {
      const market = await openMarket(service(), {
        policy: { read: 'private' },
        price: { per_row: '100' },
      })
      const body = (collection: string, operation_type: string) => ({
        app_id: market.appId,
        operation_type,
        collection,
        size_kb: 1,
      })
      const asks = async (collection: string, operation: string, headers = {}) => {
        const sent = { body: body(collection, operation), headers }
        const reply = await service().request('POST', '/api/pricing/quote', sent)
        return reply
      }
      expect((await asks(market.collection, 'read')).status).toBe(404)
      expect((await asks('nowhere', 'read')).status).toBe(404)
      const { request: _, ...hidden } = (await asks(market.collection, 'write')).body
      const { request: __, ...none } = (await asks('nowhere', 'write')).body
      expect(hidden).toEqual(none)
      expect((await asks(market.collection, 'read', market.headers)).status).toBe(200)
    })
  },
  { config: { networks: [network] } },
)

function record({ appId, collection }: Market, key: string): Asked {
  return { method: 'GET', path: `/api/apps/${appId}/collections/${collection}/records/${key}` }
}

/** Removes from a 402 the parts that are new in every one: the application's name, the quote and its time. */
function toShape(reply: TestReply) {
  const text = JSON.stringify(reply.body)
    .replace(/app-\d+/g, 'app')
    .replace(/records\/c\d/g, 'records/key')
    .replace(/"quoteId":"[^"]*"/g, '"quoteId":"q"')
    .replace(/"expiresAt":\d+/g, '"expiresAt":0')
  const names = [...reply.headers.keys()].sort()
  return { text, names, status: reply.status }
}
