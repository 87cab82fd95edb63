import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { perRow } from '@tollbase/testing/price-rules'
import type { Json } from '@tollbase/testing/service'
import { describe, expect, test } from 'vitest'

const target = { collection: 'sales' }

describe('simulatePricing', () =>
  withService((service) => {
    const openSeller = async (rules: readonly object[], access_policy = {}): Promise<Data> => {
      const app = await createData(service())
      await app.create({
        name: 'sales',
        access_policy: { derive: { per_access: '15' }, ...access_policy },
      })
      const { status, text } = await app.call('PUT', '/pricing', { rules })
      expect(status, text).toBe(200)
      return app
    }
    const simulate = async (app: Data, rules: readonly object[]): Promise<Json> => {
      const { status, text, body } = await app.call('POST', '/pricing/simulate', { rules })
      expect(status, text).toBe(200)
      return body
    }

    test('a simulation changes nothing, asks for no confirmation but names what that would be, and is for keys with Admin', async () => {
      const app = await openSeller([perRow('100')])
      const before = (await app.call('GET', '/pricing')).body
      expect(await simulate(app, [])).toMatchObject({ sales: 0, earned: '0', items: [] })
      expect((await app.call('GET', '/pricing')).body).toEqual(before)
      const priced = await openSeller([perRow('5')], { read: 'public' })
      expect((await simulate(priced, [])).confirm_free).toEqual([target])
      const path = `/api/apps/${app.appId}/pricing/simulate`
      const { status } = await service().request('POST', path, { body: { rules: [] } })
      expect(status).toBe(401)
      const wrong = { rules: [perRow('1')], from: '2026-02-30' }
      expect((await app.call('POST', '/pricing/simulate', wrong)).body.details.field).toBe('/from')
    })
  }))
