import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { endRefunds } from '../../packages/server/src/services/payments/refunds/refund-once.ts'
import { createFundedBuyer, list, readBalance } from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readEarnings,
  readReceipt,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

withService(
  (service) => {
    const get = (market: Market, path: string) =>
      service().request('GET', `/api/apps/${market.appId}${path}`, { headers: market.headers })
    const refund = (market: Market, payment: string, body: object = {}) =>
      service().request('POST', `/api/apps/${market.appId}/sales/${payment}/refund`, {
        headers: market.headers,
        body,
      })
    /** Sells two rows at 1,000 each; the market earns 1,600 of it. */
    const sell = async (market: Market) => {
      const buyer = await createFundedBuyer(service())
      const reply = await buyer.buy(service(), list({ root: market.root, limit: 2 }))
      const { payment_id: payment } = await readReceipt(service(), reply)
      return { buyer, payment: String(payment) }
    }
    const open = () => openMarket(service(), { price: { per_row: '1000' } })

    test('a part of a sale goes from the balance of the seller to that of the buyer, once, and all books show it', async () => {
      const market = await open()
      const { buyer, payment } = await sell(market)
      const first = await refund(market, payment, { amount: '500' })
      expect(first.status, first.text).toBe(200)
      expect(first.body).toMatchObject({ payment_id: payment, buyer: buyer.address, amount: '500' })
      expect(first.body.usd).toEqual({ amount: '0.0005' })
      expect((await refund(market, payment, { amount: 500 })).body).toEqual(first.body)
      const other = await refund(market, payment, { amount: '600' })
      expect([other.status, other.body.code, other.body.details.refunded]).toEqual([
        409,
        'CONFLICT',
        '500',
      ])
      expect(await readBalance(service(), buyer.address)).toBe(500n)
      expect(await readEarnings(service(), market)).toBe(1_100n)
      const { sales } = (await get(market, '/sales')).body
      expect(sales[0]).toMatchObject({ payment_id: payment, gross: '2000', refunded: '500' })
      const { transactions } = (await get(market, '/transactions')).body
      expect(transactions.map(({ kind }: { kind: string }) => kind)).toEqual(['refund', 'payment'])
      const { body: found } = await service().request(
        'GET',
        `/api/transactions/${first.body.refund_id}`,
      )
      expect(found).toMatchObject({
        kind: 'refund',
        status: 'confirmed',
        amount: '500',
        usd: { amount: '0.0005' },
        to: buyer.address,
      })
      const { body: statement } = await get(market, '/billing/statement')
      expect(statement).toMatchObject({ other: '-500', closing_balance: '1100' })
      const path = `/api/wallets/${buyer.address}/entries`
      const signed = { method: 'GET', path }
      const { entries } = (await askSigned(service(), makeTestWallet(buyer.account), signed)).body
      expect(entries[0]).toMatchObject({ kind: 'refund', amount: '500' })
    })

    test('only who sold it refunds it, and no more than it cost', async () => {
      const [market, other] = [await open(), await open()]
      const { payment } = await sell(market)
      const see = ({ status, body }: TestReply) => [status, body.code]
      expect(see(await refund(other, payment))).toEqual([404, 'PAYMENT_NOT_FOUND'])
      expect(see(await refund(market, payment, { amount: '2001' }))).toEqual([
        400,
        'VALIDATION_FAILED',
      ])
      expect(see(await refund(market, payment, { amount: '0' }))).toEqual([
        400,
        'VALIDATION_FAILED',
      ])
      // The platform keeps its share, so the whole is more than the sale left.
      expect(see(await refund(market, payment))).toEqual([409, 'BALANCE_TOO_LOW'])
      await sell(market)
      expect((await refund(market, payment)).body.amount).toBe('2000')
      await expectBalanced(service())
    })

    test('refunds at once never take more than there is, and the same one at once is one', async () => {
      const market = await open()
      const sold = await Promise.all([1, 2, 3, 4, 5].map(() => sell(market)))
      const replies = await Promise.all(
        sold.flatMap(({ payment }) => [1, 2].map(() => refund(market, payment))),
      )
      // 5 x 1,600 pays for four of 2,000.
      const done = replies.filter(({ status }) => status === 200)
      expect(new Set(done.map(({ body }) => body.refund_id)).size).toBe(4)
      expect(replies.filter(({ status }) => status === 409).map(({ body }) => body.code)).toEqual(
        replies.filter(({ status }) => status !== 200).map(() => 'BALANCE_TOO_LOW'),
      )
      expect(await readEarnings(service(), market)).toBe(0n)
      await expectBalanced(service())
    })

    test('a refund that was cut off before its entry is not promised to others, and ends when it is asked for again', async () => {
      const market = await open()
      const { buyer, payment } = await sell(market)
      const id = `refund_${payment.slice(4)}_${market.appId}`
      await service().database.execute(
        sql`INSERT INTO operations.account_hold VALUES (${id}, ${`app:${market.appId}`}, 1500)`,
      )
      expect(await readEarnings(service(), market)).toBe(100n)
      expect((await refund(market, payment, { amount: '1500' })).status).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(1_500n)
      expect(await readEarnings(service(), market)).toBe(100n)
    })

    test('of refunds at once with amounts one is made, and a refund without a body is of the whole sale', async () => {
      const market = await open()
      const { buyer, payment } = await sell(market)
      await sell(market)
      const amounts = ['1500', '1400', '1300', '1200', '1100', '2000']
      const replies = await Promise.all(
        amounts.map((amount) => refund(market, payment, { amount })),
      )
      const done = replies.filter(({ status }) => status === 200)
      expect(done).toHaveLength(1)
      for (const reply of replies)
        if (reply !== done[0]) expect([reply.status, reply.body.code]).toEqual([409, 'CONFLICT'])
      expect(await readBalance(service(), buyer.address)).toBe(BigInt(done[0]?.body.amount))
      const seller = await open()
      const sold = await sell(seller)
      await sell(seller)
      const path = `/api/apps/${seller.appId}/sales/${sold.payment}/refund`
      const whole = await service().request('POST', path, { headers: seller.headers })
      expect([whole.status, whole.body.amount], whole.text).toEqual([200, '2000'])
      await expectBalanced(service())
    })

    test('a refund that cannot be booked keeps no other one waiting', async () => {
      const market = await open()
      const { buyer, payment } = await sell(market)
      const account = `app:${market.appId}`
      const hold = (id: string) =>
        service().database.execute(
          sql`INSERT INTO operations.account_hold VALUES (${id}, ${account}, 300)`,
        )
      const lost = `refund_${'0'.repeat(32)}_${market.appId}`
      await hold(lost)
      await hold(`refund_${payment.slice(4)}_${market.appId}`)
      const failures: string[] = []
      await endRefunds(service().running.service, (_error, id) => failures.push(id))
      expect(failures).toEqual([lost])
      expect(await readBalance(service(), buyer.address)).toBe(300n)
      await service().database.execute(sql`DELETE FROM operations.account_hold WHERE id = ${lost}`)
    })

    test('tables made anew from the log are the same, and a refund that was cut off is booked by the next start', async () => {
      const market = await open()
      const { buyer, payment } = await sell(market)
      const id = `refund_${payment.slice(4)}_${market.appId}`
      await service().database.execute(
        sql`INSERT INTO operations.account_hold VALUES (${id}, ${`app:${market.appId}`}, 700)`,
      )
      await service().whileStopped(async (config) => {
        expect((await audit(config, () => undefined)).difference).toBeUndefined()
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
      await expect.poll(() => readBalance(service(), buyer.address)).toBe(700n)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
