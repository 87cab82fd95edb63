import { createFundedBuyer, list } from '@tollbase/testing/buyer'
import { createData } from '@tollbase/testing/data'
import { openMarket } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getBilling', () =>
  withService(
    (service) => {
      test('the summary is of the present month in UTC where no time is named, and all zeros where nothing was sold', async () => {
        const app = await createData(service())
        const path = `/api/billing/${app.appId}`
        const { status, body } = await service().request('GET', path, { headers: app.headers })
        expect(status).toBe(200)
        const none = { sales: 0, quantity: 0, gross: '0', fee: '0', net: '0' }
        expect(body).toMatchObject({
          ...{ app_id: app.appId, sales: 0, writes: 0, gross: '0', fee: '0', net: '0', items: [] },
          ...{ read_sales: none, write_sales: none, balance: '0', lifetime_earned: '0' },
          fees: { storage: '0', storage_paid: '0', storage_owed: '0' },
        })
        const [from, to] = [new Date(body.from), new Date(body.to)]
        expect(body.from).toMatch(/-01T00:00:00.000Z$/)
        expect(new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1))).toEqual(to)
      })

      test('what was sold is summed whole, as the fee of the platform, and as the rest', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        await buyer.buy(service(), list({ root: market.root, limit: 5 }))
        const path = `/api/billing/${market.appId}`
        const { body } = await service().request('GET', path, { headers: market.headers })
        expect(body).toMatchObject({
          sales: 1,
          gross: '5000',
          fee: '1000',
          net: '4000',
          balance: '4000',
        })
        expect(body.items).toMatchObject([{ sales: 1, quantity: 5, gross: '5000' }])
      })
    },
    { devnet: true },
  ))
