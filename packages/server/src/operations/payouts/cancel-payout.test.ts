import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('cancelPayout', () =>
  withService((service) => {
    test('a payout that was never asked for is not there to be cancelled', async () => {
      const app = await createData(service())
      for (const id of [`payout_${'0'.repeat(32)}`, `wd_${'0'.repeat(32)}`]) {
        const { status, body } = await app.call('POST', `/payout/${id}/cancel`)
        expect([status, body.code], id).toEqual([404, 'TRANSACTION_NOT_FOUND'])
      }
    })
  }))
