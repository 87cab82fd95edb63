import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('withdrawFromApplication', () =>
  withService((service) => {
    test('a key withdraws to the destination of payouts alone, and to nobody while there is none', async () => {
      const app = await createData(service())
      const [owner, thief] = [`0x${'3'.repeat(40)}`, `0x${'4'.repeat(40)}`]
      const withdraw = async (more: object) => {
        const body = { amount: '1000', network: 'eip155:84532', ...more }
        return (await app.call('POST', '/wallet/withdraw', body)).body.code
      }
      expect(await withdraw({})).toBe('PAYOUT_NOT_POSSIBLE')
      await service().request('PATCH', `/api/apps/${app.appId}`, {
        ...{ body: { owner_address: owner }, headers: service().operator },
      })
      expect(await withdraw({ destination: thief })).toBe('PAYOUT_NOT_POSSIBLE')
      // No network is there for what may leave.
      for (const more of [{}, { destination: owner }])
        expect(await withdraw(more)).toBe('TRANSFERS_NOT_CONFIGURED')
    })
  }))
