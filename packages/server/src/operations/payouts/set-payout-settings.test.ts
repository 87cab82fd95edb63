import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('setPayoutSettings', () =>
  withService((service) => {
    test('what is null or not named stays as it is, and a refused change leaves nothing of itself', async () => {
      const app = await createData(service())
      const set = (body: object) => app.call('POST', '/payout/settings', body)
      const wish = { auto_payout_enabled: true, min_payout: '700', payout_threshold: '9000' }
      expect((await set(wish)).body).toMatchObject({ success: true, ...wish, locked_balance: '0' })
      const unchanged = { min_payout: null, payout_threshold: null, auto_payout_enabled: null }
      expect((await set(unchanged)).body).toMatchObject(wish)
      const nobody = `0x${'0'.repeat(40)}`
      const refused = await set({ min_payout: '1', payout_destination: nobody })
      expect([refused.status, refused.body.details?.field]).toEqual([400, '/payout_destination'])
      expect((await app.call('POST', '/payout/info')).body).toMatchObject(wish)
    })
  }))
