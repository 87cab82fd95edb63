import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { syncChannel } from '../../packages/server/src/services/payments/channels/channel-register.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import {
  keepGone,
  writeReversal,
} from '../../packages/server/src/services/payments/reversals/write-reversal.ts'
import { ask, createFundedBuyer, depositing, list, quote, readBalance } from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readEarnings,
  setPrices,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { claimAll, makeChannelBuyer, readChannels } from './channel-buyer.ts'

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
      const claim = requirePresent(await deposit(), 'the claim of the deposit')
      const refund = (payment: string) => refundSale(market, payment)
      return { market, buyer, asked, claim, deposit, buy, refund }
    }
    const refundSale = async ({ appId, headers }: Market, payment: string) => {
      const path = `/api/apps/${appId}/sales/${payment}/refund`
      const reply = await service().request('POST', path, { headers, body: { amount: '1000' } })
      return [reply.status, reply.body.code, reply.body.error]
    }
    const ports = () => service().running.service.payments.ports
    /** Has the work of a request end at a point, as a fault of this process would. */
    const dieAt = async <T>(dying: Failpoint, work: () => Promise<T>): Promise<T> => {
      service().world.atFailpoints((point) => {
        if (point === dying) throw new Error('it died')
      })
      return work().finally(() => service().world.atFailpoints(undefined))
    }
    const lost = expect.stringContaining('which was lost')

    test('a sale out of a balance is not refunded while a deposit to it is gone, and never once that was lost; one that other money paid is', async () => {
      const { market, buyer, claim, deposit, buy, refund } = await open()
      const sold = await buy()
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await keepGone(ports(), claim)
      const gone = expect.stringContaining('does not have the payment')
      expect(await refund(sold)).toEqual([409, 'CONFLICT', gone])
      expect(await writeReversal(ports(), claim, 'expired')).toBe(5_000n)
      const named = expect.stringContaining(`the payment ${claim.id}, which was lost`)
      expect(await refund(sold)).toEqual([409, 'CONFLICT', named])
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

    test('a payment whose own money was spent otherwise is not refunded where the money that it took in its place was lost', async () => {
      const { market, buyer, asked, deposit, buy, refund } = await open()
      await buy()
      const header = { ...(await buyer.payV2(await quote(service(), asked))), 'x-balance': 'off' }
      const failed = await dieAt('payment.delivered', () => ask(service(), asked, header))
      expect(failed.status, failed.text).toBeGreaterThan(499)
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
      const other = await buy()
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      const later = requirePresent(await deposit(), 'the claim of the later deposit')
      const sold = await ask(service(), asked, header)
      expect(sold.status, sold.text).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await writeReversal(ports(), later, 'expired')).toBe(5_000n)
      const id = sold.headers.get('x-payment-id') ?? ''
      expect(await refund(id)).toEqual([409, 'CONFLICT', lost])
      expect((await refund(other))[0]).toBe(200)
      expect(await readEarnings(service(), market)).toBe(11_000n)
      await expectBalanced(service())
    })

    test('a sale that a payment paid by its own money is refunded, whatever was lost of its payer’s balance', async () => {
      const { claim, buyer, asked, buy, refund } = await open()
      await buy()
      const sold = await buyer.buy(service(), asked)
      expect(sold.status, sold.text).toBe(200)
      expect(await writeReversal(ports(), claim, 'expired')).toBe(5_000n)
      expect((await refund(sold.headers.get('x-payment-id') ?? ''))[0]).toBe(200)
      await expectBalanced(service())
    })

    test('a sale whose money was held when it was lost, and that was charged later, is not refunded', async () => {
      const { market, buyer, claim } = await open()
      await setPrices(service(), market, [
        { operation: 'write', model: 'per_record', amount: '1000' },
      ])
      const raw = JSON.stringify({ root: market.root, data: [1, 2, 3, 4, 5].map((n) => ({ n })) })
      const asked = { method: 'POST', path: '/store?wait=true', raw, headers: market.headers }
      const header = await buyer.payV2(await quote(service(), asked))
      const failed = await dieAt('payment.replyKept', () => ask(service(), asked, header))
      expect(failed.status, failed.text).toBeGreaterThan(499)
      expect(await writeReversal(ports(), claim, 'expired')).toBe(5_000n)
      const sold = await ask(service(), asked, header)
      expect(sold.status, sold.text).toBe(200)
      const id = sold.headers.get('x-payment-id') ?? ''
      expect(await refundSale(market, id)).toEqual([409, 'CONFLICT', lost])
      await expectBalanced(service())
    })

    test('a sale by a channel whose payer takes its money back is refunded once its charge is claimed', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const buyer = await makeChannelBuyer(service())
      expect((await buyer.list({ root: market.root, limit: 5 })).status).toBe(200)
      const [channel] = await readChannels(service(), buyer.address)
      const { id = '', config: text = '' } = channel ?? {}
      const config = JSON.parse(text)
      expect(await buyer.call('initiateWithdraw', [config, 1_000_000n])).toBe('success')
      const [method] = ports().methods
      const { escrow } = requirePresent(method, 'a method')
      const by = {
        ...requirePresent(method, 'a method'),
        escrow: requirePresent(escrow, 'channels'),
      }
      await syncChannel(ports(), by, { id, config })
      const path = `/api/apps/${market.appId}/transactions`
      const { body } = await service().request('GET', path, { headers: market.headers })
      const refund = () => refundSale(market, body.transactions[0].id)
      const taken = expect.stringContaining('is taking back what it was charged')
      expect(await refund()).toEqual([409, 'CONFLICT', taken])
      await claimAll(service())
      expect((await refund())[0]).toBe(200)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
