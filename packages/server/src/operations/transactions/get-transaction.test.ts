import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getTransaction', () =>
  withService((service) => {
    test('an id of no payment, payout or withdrawal is not found, whatever form it has', async () => {
      for (const id of [`pay_${'0'.repeat(32)}`, `payout_${'0'.repeat(32)}`, 'wd_1', 'x'])
        expect(await service().request('GET', `/api/transactions/${id}`), id).toMatchObject({
          ...{ status: 404, body: { code: 'TRANSACTION_NOT_FOUND' } },
        })
    })
  }))
