import { createData } from '@tollbase/testing/data'
import { readChainBalance } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { openSeller } from '@tollbase/testing/sellers'
import { describe, expect, test } from 'vitest'

describe('cancelPayout', () =>
  withService((service) => {
    test('a payout that was never asked for is not there to be cancelled', async () => {
      const app = await createData(service())
      for (const id of [`payout_${'0'.repeat(32)}`, `wd_${'0'.repeat(32)}`]) {
        const { status, body } = await app.call('POST', `/payout/${id}/cancel`)
        expect([status, body.code], id).toEqual([404, 'TRANSACTION_NOT_FOUND'])
      }
    })
  }))

describe('cancelPayout on a network', () =>
  withService(
    (service) => {
      test('a payout that is paid is not cancelled any more', async () => {
        const owner = `0x${'7'.repeat(40)}`
        const market = await openSeller(service(), owner)
        const { headers } = market
        const post = (what: string) =>
          service().request('POST', `/api/apps/${market.appId}/payout/${what}`, {
            body: {},
            headers,
          })
        const { payout_id: id } = (await post('request')).body
        await expect.poll(() => readChainBalance(service(), owner)).toBe(4_000n)
        const late = await post(`${id}/cancel`)
        expect([late.status, late.body.code]).toEqual([409, 'CONFLICT'])
      })
    },
    { devnet: true },
  ))
