import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket, store } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { replacePayments } from './dying-payments.ts'
import { makeUptoBuyer } from './upto-buyer.ts'

const later = (limits.quoteLifetimeSeconds + 1) * 1000

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
    const setPrice = async ({ market }: Pick<Paid, 'market'>, perRow: string) => {
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
      service().world.advance(later)
      const refused = await late.askAgain()
      expect(refused.status, refused.text).toBe(402)
      expect(refused.body.error).toContain('its price was promised for 5 minutes and has changed')
      expect(refused.body.accepts[0].maxAmountRequired).toBe('100000')
      expect(await readBalance(service(), late.buyer.address)).toBe(1000n)
      expect((await same.askAgain()).status).toBe(200)
      expect(await readBalance(service(), same.buyer.address)).toBe(0n)
      service().world.advance(-later)
      await expectBalanced(service())
    })

    test('a payment whose money is held after a restore is told so, whatever its request costs by now: nobody is asked to pay again', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const asked = list({ root: market.root, limit: 1 })
      const [buyer, upto] = [await createFundedBuyer(service()), await makeUptoBuyer(service())]
      const signed = [
        { ...(await buyer.payV2(await quote(service(), asked))), 'x-balance': 'off' },
        await upto.sign(asked, 1800),
      ]
      const { payments } = service().running.service
      const restoredAt = 10n ** 12n
      const methods = payments.ports.methods.map((method) => ({ ...method, restoredAt }))
      replacePayments(service(), new Payments({ ...payments.ports, methods }))
      const askAll = () => Promise.all(signed.map((header) => ask(service(), asked, header)))
      const expectHeld = async () => {
        for (const reply of await askAll())
          expect([reply.status, reply.body.code], reply.text).toEqual([409, 'PAYMENT_HELD'])
      }
      await expectHeld()
      await setPrice({ market }, '100000')
      service().world.advance(later)
      await expectHeld()
      service().world.advance(-later)
      replacePayments(service(), payments)
    })
  },
  { devnet: true },
)
