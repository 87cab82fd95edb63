import { createData } from '@tollbase/testing/data'
import { readChainBalance } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { openSeller } from '@tollbase/testing/sellers'
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

describe('requestPayout on a network', () =>
  withService(
    (service) => {
      test('what was earned goes to the owner on the chain, and as much as was asked for', async () => {
        const owner = `0x${'7'.repeat(40)}`
        const market = await openSeller(service(), owner)
        const path = `/api/apps/${market.appId}/payout/request`
        const { headers } = market
        const asked = await service().request('POST', path, { body: { amount: '3000' }, headers })
        expect([asked.status, asked.body]).toMatchObject([
          202,
          { amount: '3000', destination: owner, payout_id: expect.stringMatching(/^payout_/) },
        ])
        await expect.poll(() => readChainBalance(service(), owner)).toBe(3_000n)
        const left = await service().request('GET', `/api/apps/${market.appId}/wallet`, { headers })
        expect(left.body.available).toBe('1000')
      })
    },
    { devnet: true },
  ))
