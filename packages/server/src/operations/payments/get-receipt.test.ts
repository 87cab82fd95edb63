import { createFundedBuyer, list } from '@tollbase/testing/buyer'
import { openMarket, readReceipt } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getReceipt', () =>
  withService(
    (service) => {
      test('a receipt that was never given is not found, and neither is the id of a payment', async () => {
        for (const id of [`rcpt_${'0'.repeat(32)}`, `pay_${'0'.repeat(32)}`, 'x'])
          expect((await service().request('GET', `/api/receipts/${id}`)).body.code, id).toBe(
            'RECEIPT_NOT_FOUND',
          )
      })

      test('the receipt of a sale names request, payer, charge and who shares in it, and stays the same', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        const bought = await buyer.buy(service(), list({ root: market.root, limit: 2 }))
        const receipt = await readReceipt(service(), bought)
        expect(receipt).toMatchObject({
          payer: buyer.address,
          amount: '2000',
          app: market.appId,
        })
        expect(await readReceipt(service(), bought)).toEqual(receipt)
      })
    },
    { devnet: true },
  ))
