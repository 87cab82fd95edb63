import { createFundedBuyer, list } from '@tollbase/testing/buyer'
import { openMarket } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listPlatformWalletEntries', () =>
  withService(
    (service) => {
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

      test('a sale is an entry with the share of the platform', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        await buyer.buy(service(), list({ root: market.root, limit: 5 }))
        const headers = service().operator
        const { body } = await service().request('GET', '/api/platform/wallet/entries', { headers })
        expect(body.entries).toMatchObject([
          { kind: 'sale', amount: '1000', balance_after: '1000' },
        ])
      })
    },
    { devnet: true },
  ))
