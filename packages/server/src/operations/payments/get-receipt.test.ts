import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getReceipt', () =>
  withService((service) => {
    test('a receipt that was never given is not found, and neither is the id of a payment', async () => {
      for (const id of [`rcpt_${'0'.repeat(32)}`, `pay_${'0'.repeat(32)}`, 'x'])
        expect((await service().request('GET', `/api/receipts/${id}`)).body.code, id).toBe(
          'RECEIPT_NOT_FOUND',
        )
    })
  }))
