import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listHeldPayments', () =>
  withService((service) => {
    test('a service that was never restored holds nothing, and a cursor of another list is refused', async () => {
      const read = (query = '') =>
        service().request('GET', `/api/platform/held${query}`, { headers: service().operator })
      expect((await read()).body).toEqual({ payments: [], next_cursor: null })
      const wrong = await read('?cursor=pay_1')
      expect([wrong.status, wrong.body.details?.field]).toEqual([400, '/query/cursor'])
    })
  }))
