import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('refundSale', () =>
  withService((service) => {
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
  }))
