import { readChainBalance } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { openSeller } from '@tollbase/testing/sellers'
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

describe('withdrawFromPlatform on a network', () =>
  withService(
    (service) => {
      test('the share of the platform goes where the operator says', async () => {
        await openSeller(service(), `0x${'7'.repeat(40)}`)
        const destination = `0x${'8'.repeat(40)}`
        const asked = await service().request('POST', '/api/platform/wallet/withdraw', {
          ...{ body: { amount: '1000', destination }, headers: service().operator },
        })
        expect(asked.status, asked.text).toBe(202)
        await expect.poll(() => readChainBalance(service(), destination)).toBe(1_000n)
      })
    },
    { devnet: true },
  ))
