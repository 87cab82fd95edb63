import { createFundedBuyer, list } from '@tollbase/testing/buyer'
import { createData } from '@tollbase/testing/data'
import { openMarket } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listApplicationWalletEntries', () =>
  withService(
    (service) => {
      test('a wallet on which nothing moved has no entries, and a cursor of another list is refused', async () => {
        const app = await createData(service())
        const read = (query = '') => app.call('GET', `/wallet/entries${query}`)
        expect((await read()).body).toEqual({ entries: [], next_cursor: null })
        for (const cursor of ['1', '1.', 'x.1', '1.2.3']) {
          const wrong = await read(`?cursor=${cursor}`)
          expect([wrong.status, wrong.body.details?.field], cursor).toEqual([400, '/query/cursor'])
        }
      })

      test('a sale is an entry with its share, and names the payment', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        await buyer.buy(service(), list({ root: market.root, limit: 5 }))
        const path = `/api/apps/${market.appId}/wallet/entries`
        const { body } = await service().request('GET', path, { headers: market.headers })
        expect(body.entries).toMatchObject([
          { kind: 'sale', amount: '4000', balance_after: '4000' },
        ])
      })
    },
    { devnet: true },
  ))
