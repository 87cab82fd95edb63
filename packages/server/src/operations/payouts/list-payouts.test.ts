import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { openSeller } from '@tollbase/testing/sellers'
import { describe, expect, test } from 'vitest'

describe('listPayouts', () =>
  withService((service) => {
    test('an application that asked for no payout has an empty list, and a cursor of another list is refused', async () => {
      const app = await createData(service())
      expect((await app.call('GET', '/payouts')).body).toEqual({ payouts: [], next_cursor: null })
      for (const cursor of ['1', '1.', 'x.payout_1']) {
        const wrong = await app.call('GET', `/payouts?cursor=${cursor}`)
        expect([wrong.status, wrong.body.details?.field], cursor).toEqual([400, '/query/cursor'])
      }
    })
  }))

describe('listPayouts on a network', () =>
  withService(
    (service) => {
      test('a payout is listed from the moment it is asked for, with its amount and where it goes', async () => {
        const owner = `0x${'7'.repeat(40)}`
        const market = await openSeller(service(), owner)
        const path = `/api/apps/${market.appId}`
        const { headers } = market
        const { body } = await service().request('POST', `${path}/payout/request`, {
          body: {},
          headers,
        })
        const listed = await service().request('GET', `${path}/payouts`, { headers })
        expect(listed.body.payouts).toMatchObject([
          { payout_id: body.payout_id, amount: '4000', destination: owner },
        ])
      })
    },
    { devnet: true },
  ))
