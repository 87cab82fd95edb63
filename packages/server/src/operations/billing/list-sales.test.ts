import { limits } from '@tollbase/contract/limits'
import { createFundedBuyer, list } from '@tollbase/testing/buyer'
import { createData } from '@tollbase/testing/data'
import { openMarket } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listSales', () =>
  withService(
    (service) => {
      test('a page, a cursor and a time that cannot be are refused, and an application that sold nothing has an empty list', async () => {
        const app = await createData(service())
        const most = await app.call('GET', `/sales?limit=${limits.billingLinesMax}`)
        expect([most.status, most.body]).toEqual([200, { sales: [], next_cursor: null }])
        for (const [query, field] of [
          [`limit=${limits.billingLinesMax + 1}`, '/query/limit'],
          ['cursor=x', '/query/cursor'],
          ['by=buyer&cursor=WyIxIl0', '/query/cursor'],
          ['from=2026-02-31', '/query/from'],
          ['from=2026-02-02&to=2026-02-01', '/query/from'],
          ['from=yesterday', '/query/from'],
        ]) {
          const refused = await app.call('GET', `/sales?${query}`)
          expect([refused.status, refused.body.details?.field], query).toEqual([400, field])
        }
      })

      test('a sale says what was bought, by whom, and how it was shared', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        await buyer.buy(service(), list({ root: market.root, limit: 5 }))
        const path = `/api/apps/${market.appId}/sales`
        const { body } = await service().request('GET', path, { headers: market.headers })
        expect(body.sales).toMatchObject([
          { buyer: buyer.address, quantity: 5, gross: '5000', fee: '1000', net: '4000' },
        ])
      })
    },
    { devnet: true },
  ))
