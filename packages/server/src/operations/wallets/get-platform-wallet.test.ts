import { createFundedBuyer, list } from '@tollbase/testing/buyer'
import { openMarket } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getPlatformWallet', () =>
  withService(
    (service) => {
      test('a service that has sold nothing has nothing, and has lost nothing', async () => {
        const headers = service().operator
        const { status, body } = await service().request('GET', '/api/platform/wallet', { headers })
        expect(status).toBe(200)
        expect(body).toMatchObject({
          ...{
            available: '0',
            pending: '0',
            decimals: 6,
            usd: { available: '0.00', pending: '0.00' },
          },
          losses: '0',
        })
      })

      test('a fifth of what was sold is the balance of the platform', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        await buyer.buy(service(), list({ root: market.root, limit: 5 }))
        const headers = service().operator
        const { body } = await service().request('GET', '/api/platform/wallet', { headers })
        expect(body).toMatchObject({ available: '1000', usd: { available: '0.001' } })
      })
    },
    { devnet: true },
  ))
