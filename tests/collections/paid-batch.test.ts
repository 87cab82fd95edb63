import { expect, test } from 'vitest'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { makeDyingPayments, replacePayments } from '../payments/dying-payments.ts'
import {
  type Asked,
  ask,
  type Buyer,
  createFundedBuyer,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readEarnings,
  setPrices,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestReply } from '../support/service.ts'

const perRecord = 1_000n

withService(
  (service) => {
    async function scene(): Promise<{ market: Market; buyer: Buyer; asked: Asked }> {
      const market = await openMarket(service())
      const amount = String(perRecord)
      await setPrices(service(), market, [{ operation: 'write', model: 'per_record', amount }])
      const operations = [
        { operation: 'create', collection: 'cities', data: { id: 'new', name: 'Villach' } },
        { operation: 'create', collection: 'free', data: { id: 'note' } },
        { operation: 'update', collection: 'cities', data: { id: 'c0', name: 'Vienna' } },
      ]
      const asked = {
        method: 'POST',
        path: `/api/apps/${market.appId}/batch`,
        raw: JSON.stringify({ operations }),
        headers: market.headers,
      }
      return { market, buyer: await createFundedBuyer(service()), asked }
    }

    const versions = async (market: Market, collection: string, key: string) => {
      const path = `/api/apps/${market.appId}/collections/${collection}/records/${key}/history`
      const { body } = await service().request('GET', path, { headers: market.headers })
      return body.versions?.length ?? 0
    }

    async function expectDoneOnce(market: Market, buyer: Buyer, reply: TestReply): Promise<void> {
      expect(reply.status, reply.text).toBe(200)
      const ids = reply.body.map(({ result }: Json) => result.results.map(({ id }: Json) => id))
      expect(ids).toEqual([['new'], ['note'], ['c0']])
      expect(await versions(market, 'cities', 'new')).toBe(1)
      expect(await versions(market, 'free', 'note')).toBe(1)
      expect(await versions(market, 'cities', 'c0')).toBe(2)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe((2n * perRecord * 8n) / 10n)
      await expectBalanced(service())
    }

    test('a batch is paid once, done once, and answered again for nothing', async () => {
      const { market, buyer, asked } = await scene()
      const header = await buyer.payV2(await quote(service(), asked))
      const first = await ask(service(), asked, header)
      await expectDoneOnce(market, buyer, first)
      const again = await ask(service(), asked, header)
      expect(again.text).toBe(first.text)
      await expectDoneOnce(market, buyer, again)
    })

    test('a batch whose process dies at any step of its payment is done once, and answered to the retry', async () => {
      for (let step = 0; ; step++) {
        let steps = 0
        for (const when of ['before', 'after'] as const) {
          const { market, buyer, asked } = await scene()
          const header = await buyer.payV2(await quote(service(), asked))
          const { ports } = service().running.service.payments
          const dying = makeDyingPayments(ports, { step, when })
          replacePayments(service(), dying.payments)
          await ask(service(), asked, header)
          replacePayments(service(), new Payments(ports))
          await expectDoneOnce(market, buyer, await ask(service(), asked, header))
          steps = dying.steps().length
        }
        if (steps <= step) return
      }
    })
  },
  { devnet: true },
)
