import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('withdrawFromPlatform', () =>
  withService((service) => {
    test("the platform's share goes nowhere by itself: a withdrawal names its destination", async () => {
      const body = { amount: '200', network: 'eip155:84532' }
      const nowhere = await service().request('POST', '/api/platform/wallet/withdraw', {
        ...{ body, headers: service().operator },
      })
      expect([nowhere.status, nowhere.body.details?.field]).toEqual([400, '/destination'])
    })
  }))
