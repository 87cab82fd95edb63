import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import {
  keepGone,
  writeReversal,
} from '../../packages/server/src/services/payments/reversals/write-reversal.ts'
import { ask, createFundedBuyer, depositing, list, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket, readEarnings } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'

withService(
  (service) => {
    /** A wallet that deposits 5000, and buys five rows of a market at 1000 each out of that. */
    const open = async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const buyer = await createFundedBuyer(service())
      const deposit = async () => {
        const paid = await buyer.buy(service(), depositing(buyer.address, '5000'))
        expect(paid.status, paid.text).toBe(200)
        return findClaim(service().database, { id: String(paid.body.payment_id) })
      }
      const asked = list({ root: market.root, limit: 5 })
      const buy = async () => {
        const sold = await ask(service(), asked, await buyer.payV2(await quote(service(), asked)))
        expect(sold.status, sold.text).toBe(200)
        return sold.headers.get('x-payment-id') ?? ''
      }
      const refund = async (payment: string) => {
        const path = `/api/apps/${market.appId}/sales/${payment}/refund`
        const { headers } = market
        const reply = await service().request('POST', path, { headers, body: { amount: '1000' } })
        return [reply.status, reply.body.code, reply.body.error]
      }
      const claim = requirePresent(await deposit(), 'the claim of the deposit')
      return { market, buyer, claim, deposit, buy, refund }
    }
    const ports = () => service().running.service.payments.ports

    test('a sale out of a balance is not refunded while a deposit to it is gone, and never once that was lost; one that other money paid is', async () => {
      const { market, buyer, claim, deposit, buy, refund } = await open()
      const sold = await buy()
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await keepGone(ports(), claim)
      const gone = expect.stringContaining('does not have the payment')
      expect(await refund(sold)).toEqual([409, 'CONFLICT', gone])
      expect(await writeReversal(ports(), claim, 'expired')).toBe(5_000n)
      const lost = expect.stringContaining(`the payment ${claim.id}, which was lost`)
      expect(await refund(sold)).toEqual([409, 'CONFLICT', lost])
      expect(await readEarnings(service(), market)).toBe(4_000n)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await deposit()
      expect((await refund(await buy()))[0]).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(1_000n)
      await expectBalanced(service())
    })

    test('a deposit of which all was left, or that came after the sale, refuses no refund', async () => {
      const { claim, deposit, buy, refund } = await open()
      const sold = await buy()
      const later = requirePresent(await deposit(), 'the claim of the later deposit')
      expect(await writeReversal(ports(), later, 'expired')).toBe(0n)
      const next = requirePresent(await deposit(), 'the claim of the last deposit')
      await buy()
      expect(await writeReversal(ports(), next, 'expired')).toBe(5_000n)
      expect((await refund(sold))[0]).toBe(200)
      expect(claim.operation).toBe('deposit')
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
