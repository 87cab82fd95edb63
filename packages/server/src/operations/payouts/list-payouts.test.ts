import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listPayouts', () =>
  withService((service) => {
    test('an application that asked for no payout has an empty list, and a cursor of another list is refused', async () => {
      const app = await createData(service())
      expect((await app.call('GET', '/payouts')).body).toEqual({ payouts: [], next_cursor: null })
      for (const cursor of ['1', '1.', 'x.payout_1']) {
        const wrong = await app.call('GET', `/payouts?cursor=${cursor}`)
        expect([wrong.status, wrong.body.details?.field], cursor).toEqual([400, '/query/cursor'])
      }
    })
  }))
