import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import { ask, type Buyer, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import {
  cities,
  expectBalanced,
  openMarket,
  readChainBalance,
  readEarnings,
  readReceipt,
} from '../support/market.ts'
import { handIn } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'

const faucet = 100_000_000n

withService(
  (service) => {
    const markets = () => openMarket(service(), { price: { per_row: '1000' } })

    /** A buyer whose balance is the change of one purchase: 1000 were charged of 10,000. */
    const createBuyerWithChange = async (root: string): Promise<Buyer> => {
      const buyer = await createFundedBuyer(service())
      const find = { id: { is: 'c0' } }
      const first = await buyer.buy(service(), list({ root, find, limit: 10 }))
      expect(first.status, first.text).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(9000n)
      return buyer
    }

    const readNotice = (reply: TestReply) =>
      JSON.parse(Buffer.from(reply.headers.get('payment-response') ?? '', 'base64').toString())

    test('a balance that covers the quote pays: the charge is taken from it, and the authorization is never sent', async () => {
      const market = await markets()
      const buyer = await createBuyerWithChange(market.root)
      const asked = list({ root: market.root, limit: 3 })
      const header = await buyer.payV2(await quote(service(), asked))
      const reply = await ask(service(), asked, header)
      expect(reply.status, reply.text).toBe(200)
      expect(readNotice(reply)).toMatchObject({
        success: true,
        transaction: '',
        paid_from: 'balance',
        amount: '3000',
      })
      const receipt = await readReceipt(service(), reply)
      expect(receipt).toMatchObject({ paid_from: 'balance', transaction: null, amount: '3000' })
      expect(receipt).toMatchObject({ deposited: '0', change: '0' })
      expect(await readBalance(service(), buyer.address)).toBe(6000n)
      expect(await readChainBalance(service(), buyer.address)).toBe(faucet - 10_000n)
      // Repeated it is the same answer, and for anything else the payment is used.
      const again = await ask(service(), asked, header)
      expect([again.text, readNotice(again)]).toEqual([reply.text, readNotice(reply)])
      const other = await ask(service(), list({ root: market.root, limit: 2 }), header)
      expect(other.body.code).toBe('PAYMENT_ALREADY_USED')
      expect(await readBalance(service(), buyer.address)).toBe(6000n)
      expect(await readEarnings(service(), market)).toBe(3200n)
      await expectBalanced(service())
    })

    test('X-Balance: off settles on the chain and leaves the balance, and any other word is 400 before anybody pays', async () => {
      const market = await markets()
      const buyer = await createBuyerWithChange(market.root)
      const asked = list({ root: market.root, limit: 3 })
      const header = await buyer.payV2(await quote(service(), asked))
      const wrong = await ask(service(), asked, { ...header, 'x-balance': 'never' })
      expect([wrong.status, wrong.body.code]).toEqual([400, 'VALIDATION_FAILED'])
      const reply = await ask(service(), asked, { ...header, 'x-balance': 'off' })
      expect(reply.status, reply.text).toBe(200)
      expect(readNotice(reply).transaction).toMatch(/^0x/)
      expect(await readBalance(service(), buyer.address)).toBe(9000n)
      expect(await readChainBalance(service(), buyer.address)).toBe(faucet - 13_000n)
      await expectBalanced(service())
    })

    test('an authorization that a balance paid for and somebody else hands in is a deposit, once, and buys nothing more', async () => {
      const market = await markets()
      const buyer = await createBuyerWithChange(market.root)
      const asked = list({ root: market.root, limit: 3 })
      const header = await buyer.payV2(await quote(service(), asked))
      const reply = await ask(service(), asked, header)
      expect(readNotice(reply).paid_from).toBe('balance')
      await handIn(service(), header)
      const { payments } = service().running.service
      const id = reply.headers.get('x-payment-id') ?? ''
      // The mark that it is sold comes a moment later.
      for (let n = 0; n < 3; n++) {
        const claim = requirePresent(await findClaim(service().database, { id }), 'its claim')
        await payments.reconcile(claim)
      }
      expect(await readBalance(service(), buyer.address)).toBe(6000n + 3000n)
      const again = await ask(service(), asked, header)
      expect([again.text, readNotice(again)]).toEqual([reply.text, readNotice(reply)])
      expect((await findClaim(service().database, { id }))?.state).toBe('delivered')
      expect(await readEarnings(service(), market)).toBe(3200n)
      await expectBalanced(service())
    })

    test('A3: an authorization that was used before it came here buys nothing from its payer’s balance', async () => {
      const market = await markets()
      const buyer = await createBuyerWithChange(market.root)
      const asked = list({ root: market.root, limit: 3 })
      const header = await buyer.payV2(await quote(service(), asked))
      await handIn(service(), header)
      const reply = await ask(service(), asked, header)
      expect(reply.status, reply.text).toBe(402)
      expect(await readBalance(service(), buyer.address)).toBe(9000n + 3000n)
      expect(await readEarnings(service(), market)).toBe(800n)
      await expectBalanced(service())
    })

    test('of many purchases at once the balance pays as many as it covers, and the others are settled', async () => {
      const market = await markets()
      const buyer = await createBuyerWithChange(market.root)
      const limits = [2, 3, 4, 5]
      const replies = await Promise.all(
        limits.map(async (limit) => {
          const asked = list({ root: market.root, limit })
          return ask(service(), asked, await buyer.payV2(await quote(service(), asked)))
        }),
      )
      for (const reply of replies) expect(reply.status, reply.text).toBe(200)
      const receipts = await Promise.all(replies.map((reply) => readReceipt(service(), reply)))
      const held = receipts.filter(({ paid_from }) => paid_from === 'balance')
      expect(held.length).toBeGreaterThan(0)
      expect(held.length).toBeLessThan(limits.length)
      const charged = held.reduce((sum, { amount }) => sum + BigInt(amount), 0n)
      expect(await readBalance(service(), buyer.address)).toBe(9000n - charged)
      await expectBalanced(service())
    })

    test('a payment whose money is on a balance, and was spent since, is refused with a new quote', async () => {
      const records = cities.map((city) => ({ ...city, text: 'x'.repeat(400) }))
      const market = await openMarket(service(), { price: { per_kb: '5000' }, records })
      const buyer = await createFundedBuyer(service())
      // It has more KB than are paid for: the money becomes a balance.
      const asked = list({ root: market.root, max_kb: 1 })
      const header = await buyer.payV2(await quote(service(), asked))
      const failed = await ask(service(), asked, header)
      expect([failed.status, failed.body.code]).toEqual([413, 'RESULT_TOO_LARGE'])
      expect(await readBalance(service(), buyer.address)).toBe(5000n)
      const small = list({ root: market.root, find: { id: { is: 'c0' } }, max_kb: 1 })
      const spent = await ask(service(), small, await buyer.payV2(await quote(service(), small)))
      expect(spent.status, spent.text).toBe(200)
      const left = await readBalance(service(), buyer.address)
      expect(left).toBeLessThan(5000n)
      const refused = await ask(service(), asked, { ...header, 'x-balance': 'off' })
      expect(refused.status, refused.text).toBe(402)
      expect(refused.body.error).toMatch(/its money is on the balance/)
      expect(await readBalance(service(), buyer.address)).toBe(left)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
