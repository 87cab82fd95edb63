import { createData } from '@tollbase/testing/data'
import { idleNetwork } from '@tollbase/testing/idle-network'
import { withService } from '@tollbase/testing/per-engine'
import { perRow } from '@tollbase/testing/price-rules'
import { describe, expect, test } from 'vitest'

describe('buyPass', () =>
  withService(
    (service) => {
      test('a pass is asked at its own amount, and one of other hours or of another collection is not found', async () => {
        const app = await createData(service())
        for (const name of ['sales', 'others'])
          await app.create({ name, access_policy: { read: 'public' } })
        const target = { collection: 'sales' }
        const pass = { target, operation: 'read', model: 'time_pass', hours: 24, amount: '5000' }
        const put = await app.call('PUT', '/pricing', { rules: [perRow('100'), pass] })
        expect(put.status, put.text).toBe(200)
        const buy = (body: object) =>
          service().request('POST', `/api/apps/${app.appId}/passes`, { body })
        const required = await buy({ target, hours: 24 })
        expect([required.status, required.body.accepts[0].maxAmountRequired]).toEqual([402, '5000'])
        for (const body of [
          { target, hours: 1 },
          { target: { collection: 'others' }, hours: 24 },
        ])
          expect(await buy(body)).toMatchObject({ status: 404, body: { code: 'PASS_NOT_FOUND' } })
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
