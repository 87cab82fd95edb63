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

      test('nobody is sold a pass for what costs nothing by now, or cannot be bought', async () => {
        const app = await createData(service())
        const price = { per_row: '100' }
        await app.create({ name: 'sales', access_policy: { read: 'public', price } })
        await app.create({ name: 'grouped', access_policy: { read: 'public', price } })
        const made = await app.call('POST', '/views', {
          ...{ name: 'totals', source_collections: ['grouped'], refresh_mode: 'lazy' },
          query: { from: 'grouped', select: ['market'], groupBy: ['market'] },
          access_policy: { read: 'public' },
        })
        expect(made.status, made.text).toBe(201)
        const sell = (target: object) => ({
          ...{ target, operation: 'read', model: 'time_pass', hours: 24, amount: '5000' },
        })
        const targets = [{ collection: 'sales' }, { view: 'totals' }]
        const derive = (terms: object | string) =>
          app.call('PUT', '/collections/grouped', {
            access_policy: { read: 'public', price, derive: terms },
          })
        expect((await derive({ per_access: '50' })).status).toBe(200)
        const put = await app.call('PUT', '/pricing', { rules: targets.map(sell) })
        expect(put.status, put.text).toBe(200)
        const buy = (target: object) =>
          service().request('POST', `/api/apps/${app.appId}/passes`, {
            body: { target, hours: 24 },
          })
        for (const target of targets) expect((await buy(target)).status).toBe(402)
        const freed = await app.call('PUT', '/collections/sales', {
          ...{ access_policy: { read: 'public' }, confirm_free: [{ collection: 'sales' }] },
        })
        expect(freed.status, freed.text).toBe(200)
        const denied = await derive('deny')
        expect(denied.status, denied.text).toBe(200)
        for (const target of targets)
          expect(await buy(target)).toMatchObject({ status: 404, body: { code: 'PASS_NOT_FOUND' } })
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
