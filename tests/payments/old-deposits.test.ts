import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket, store } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'

withService(
  (service) => {
    const long = { id: 'long', name: 'x'.repeat(5_000) }
    /** Pays for an answer that is longer than it may be, so that the money goes to the balance of the payer. */
    const payForNothing = async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' }, records: [long] })
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, limit: 1, max_kb: 1 })
      const header = { ...(await buyer.payV2(await quote(service(), asked))), 'x-balance': 'off' }
      const failed = await ask(service(), asked, header)
      expect(failed.status, failed.text).toBe(413)
      expect(await readBalance(service(), buyer.address)).toBe(1000n)
      await store(service(), market, [{ id: 'long', name: 'short' }])
      return { market, buyer, askAgain: () => ask(service(), asked, header) }
    }
    type Paid = Awaited<ReturnType<typeof payForNothing>>
    const setPrice = async ({ market }: Paid, perRow: string) => {
      const path = `/api/apps/${market.appId}/collections/${market.collection}`
      const body = { access_policy: { read: 'public', price: { per_row: perRow } } }
      const changed = await service().request('PUT', path, { headers: market.headers, body })
      expect(changed.status, changed.text).toBe(200)
    }

    test('a payment whose answer could not be made buys at its price for the life of a quote, after that only while the price is the same', async () => {
      const [soon, late, same] = [
        await payForNothing(),
        await payForNothing(),
        await payForNothing(),
      ]
      await setPrice(soon, '100000')
      await setPrice(late, '100000')
      const bought = await soon.askAgain()
      expect(bought.status, bought.text).toBe(200)
      service().world.advance((limits.quoteLifetimeSeconds + 1) * 1000)
      const refused = await late.askAgain()
      expect(refused.status, refused.text).toBe(402)
      expect(refused.body.error).toContain('its price was promised for 5 minutes and has changed')
      expect(refused.body.accepts[0].maxAmountRequired).toBe('100000')
      expect(await readBalance(service(), late.buyer.address)).toBe(1000n)
      expect((await same.askAgain()).status).toBe(200)
      expect(await readBalance(service(), same.buyer.address)).toBe(0n)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
