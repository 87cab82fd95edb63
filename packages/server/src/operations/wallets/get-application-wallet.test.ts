import { createFundedBuyer, list } from '@tollbase/testing/buyer'
import { createData } from '@tollbase/testing/data'
import { openMarket } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getApplicationWallet', () =>
  withService(
    (service) => {
      test('an application has a wallet of its own from the beginning, for keys with Admin alone', async () => {
        const app = await createData(service())
        const { body } = await app.call('GET', '/wallet')
        expect(body).toMatchObject({
          available: '0',
          pending: '0',
          decimals: 6,
          usd: { available: '0.00', pending: '0.00' },
        })
        const made = await app.call('POST', '/keys', { permissions: ['Read', 'Write'] })
        const headers = { 'x-app-key': made.body.key }
        const read = await service().request('GET', `/api/apps/${app.appId}/wallet`, { headers })
        expect(read.status).toBe(403)
      })

      test('four fifths of what was sold are on the balance of the application that sold it', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        await buyer.buy(service(), list({ root: market.root, limit: 5 }))
        const path = `/api/apps/${market.appId}/wallet`
        const { body } = await service().request('GET', path, { headers: market.headers })
        expect(body).toMatchObject({ available: '4000', usd: { available: '0.004' } })
      })
    },
    { devnet: true },
  ))
