import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listApplicationWalletEntries', () =>
  withService((service) => {
    test('a wallet on which nothing moved has no entries, and a cursor of another list is refused', async () => {
      const app = await createData(service())
      const read = (query = '') => app.call('GET', `/wallet/entries${query}`)
      expect((await read()).body).toEqual({ entries: [], next_cursor: null })
      for (const cursor of ['1', '1.', 'x.1', '1.2.3']) {
        const wrong = await read(`?cursor=${cursor}`)
        expect([wrong.status, wrong.body.details?.field], cursor).toEqual([400, '/query/cursor'])
      }
    })
  }))
