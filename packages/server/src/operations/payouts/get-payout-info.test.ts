import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { openSeller } from '@tollbase/testing/sellers'
import { describe, expect, test } from 'vitest'

describe('getPayoutInfo', () =>
  withService((service) => {
    test('an application that has earned nothing has zeros, and no destination until it has an owner or names one', async () => {
      const app = await createData(service())
      const read = async () => (await app.call('POST', '/payout/info')).body
      expect(await read()).toMatchObject({
        ...{ available_balance: '0', pending_balance: '0' },
        ...{ lifetime_earned: '0', lifetime_paid: '0', lifetime_direct: '0' },
        ...{ payout_destination: null, pending_destination: null, locked_balance: '0' },
        pending_locked_balance: null,
      })
      const owner = `0x${'3'.repeat(40)}`
      await service().request('PATCH', `/api/apps/${app.appId}`, {
        ...{ body: { owner_address: owner }, headers: service().operator },
      })
      expect((await read()).payout_destination).toBe(owner)
    })
  }))

describe('getPayoutInfo on a network', () =>
  withService(
    (service) => {
      test('what was earned is available until it is paid out, and counts as earned for ever', async () => {
        const owner = `0x${'7'.repeat(40)}`
        const market = await openSeller(service(), owner)
        const { headers } = market
        const post = (what: string, body: object) =>
          service().request('POST', `/api/apps/${market.appId}/payout/${what}`, { body, headers })
        expect((await post('info', {})).body).toMatchObject({
          ...{ available_balance: '4000', lifetime_earned: '4000', payout_destination: owner },
        })
        await post('request', {})
        expect((await post('info', {})).body).toMatchObject({
          ...{ available_balance: '0', lifetime_earned: '4000' },
        })
      })
    },
    { devnet: true },
  ))
