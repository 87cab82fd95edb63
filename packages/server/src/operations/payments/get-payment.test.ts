import { createFundedBuyer, list } from '@tollbase/testing/buyer'
import { openMarket, readReceipt } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getPayment', () =>
  withService(
    (service) => {
      test('a payment that was never brought here is not found, and neither is the id of a receipt', async () => {
        for (const id of [`pay_${'0'.repeat(32)}`, `rcpt_${'0'.repeat(32)}`, 'x'])
          expect((await service().request('GET', `/api/payments/${id}`)).body.code, id).toBe(
            'PAYMENT_NOT_FOUND',
          )
      })

      test('a payment says what was paid for and charged, to anyone who has its id', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        const bought = await buyer.buy(service(), list({ root: market.root, limit: 2 }))
        const { payment_id: id, receipt_id: receipt } = await readReceipt(service(), bought)
        const { body } = await service().request('GET', `/api/payments/${id}`)
        expect(body).toMatchObject({
          payment_id: id,
          receipt_id: receipt,
          state: 'delivered',
          amount: '2000',
        })
      })
    },
    { devnet: true },
  ))
