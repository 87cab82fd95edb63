import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getPlatformWallet', () =>
  withService((service) => {
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
  }))
