import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listPlatformWalletEntries', () =>
  withService((service) => {
    test('a service that has sold nothing has no entries, and a cursor of another list is refused', async () => {
      const path = '/api/platform/wallet/entries'
      const read = (query = '') =>
        service().request('GET', `${path}${query}`, { headers: service().operator })
      expect((await read()).body).toEqual({ entries: [], next_cursor: null })
      for (const cursor of ['1', '1.', 'x.1', '1.2.3']) {
        const wrong = await read(`?cursor=${cursor}`)
        expect([wrong.status, wrong.body.details?.field], cursor).toEqual([400, '/query/cursor'])
      }
    })
  }))
