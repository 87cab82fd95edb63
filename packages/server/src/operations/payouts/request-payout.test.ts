import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('requestPayout', () =>
  withService((service) => {
    test('a payout needs a destination before all else, and then a network to leave on', async () => {
      const app = await createData(service())
      const request = async () => (await app.call('POST', '/payout/request', {})).body.code
      expect(await request()).toBe('PAYOUT_NOT_POSSIBLE')
      await service().request('PATCH', `/api/apps/${app.appId}`, {
        ...{ body: { owner_address: `0x${'3'.repeat(40)}` }, headers: service().operator },
      })
      expect(await request()).toBe('TRANSFERS_NOT_CONFIGURED')
      expect((await app.call('GET', '/payouts')).body.payouts).toEqual([])
    })
  }))
