import { createFundedBuyer, list } from '@tollbase/testing/buyer'
import { createData } from '@tollbase/testing/data'
import { openMarket, readReceipt } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('refundSale', () =>
  withService(
    (service) => {
      test('nothing is refunded that was not sold, and an amount that is no whole number of atomic units is refused', async () => {
        const app = await createData(service())
        const refund = (body?: object) => app.call('POST', '/sales/pay_none/refund', body)
        for (const body of [undefined, {}, { amount: '1' }])
          expect(await refund(body)).toMatchObject({
            status: 404,
            body: { code: 'PAYMENT_NOT_FOUND' },
          })
        for (const amount of ['-1', '1.5', 'all', ''])
          expect((await refund({ amount })).body.details?.field, amount).toBe('/amount')
      })

      test('the whole of a sale goes back to the balance of its buyer, once', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        // Two are sold, as a refund is taken from what the seller has earned.
        await buyer.buy(service(), list({ root: market.root, limit: 5 }))
        const bought = await buyer.buy(service(), list({ root: market.root, limit: 1 }))
        const { payment_id: id } = await readReceipt(service(), bought)
        const path = `/api/apps/${market.appId}/sales/${id}/refund`
        const refund = () => service().request('POST', path, { body: {}, headers: market.headers })
        const first = await refund()
        expect(first.body).toMatchObject({ payment_id: id, buyer: buyer.address, amount: '1000' })
        expect((await refund()).body).toEqual(first.body)
        const wallet = await service().request('GET', `/api/wallets/${buyer.address}`)
        expect(wallet.body.available).toBe('1000')
      })
    },
    { devnet: true },
  ))
