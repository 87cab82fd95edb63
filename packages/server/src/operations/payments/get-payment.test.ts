import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getPayment', () =>
  withService((service) => {
    test('a payment that was never brought here is not found, and neither is the id of a receipt', async () => {
      for (const id of [`pay_${'0'.repeat(32)}`, `rcpt_${'0'.repeat(32)}`, 'x'])
        expect((await service().request('GET', `/api/payments/${id}`)).body.code, id).toBe(
          'PAYMENT_NOT_FOUND',
        )
    })
  }))
