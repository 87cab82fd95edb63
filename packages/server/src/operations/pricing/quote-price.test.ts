import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('quotePrice', () =>
  withService((service) => {
    test('a size that is said beforehand costs its rows and KB exactly, under every name that clients read', async () => {
      const app = await createData(service())
      const price = { per_access: '7', per_row: '100', per_kb: '10' }
      await app.create({ name: 'sales', access_policy: { read: 'public', price } })
      const body = {
        ...{ app_id: app.appId, collection: 'sales', operation_type: 'read' },
        ...{ size_kb: 2, rows: 3 },
      }
      const quoted = await service().request('POST', '/api/pricing/quote', { body })
      expect(quoted.status, quoted.text).toBe(200)
      expect(quoted.body).toMatchObject({
        ...{ type: 'read_quote', rows: 3, price, currency: 'USDC', decimals: 6 },
        ...{ total_cost_atomic: '327', total_cost_utia: 327, base_total_cost_utia: 327 },
        ...{ total_cost: 0.000327, total_cost_tia: 0.000327, usd: { total_cost: '0.000327' } },
      })
    })

    test('a quote without the name of a predefined query needs application, kind, size and collection, and names the first that is missing', async () => {
      const app = await createData(service())
      await app.create({ name: 'sales', access_policy: 'public' })
      const whole = {
        ...{ app_id: app.appId, operation_type: 'read', size_kb: 1, collection: 'sales' },
      }
      const quote = (body: object) => service().request('POST', '/api/pricing/quote', { body })
      for (const name of ['app_id', 'operation_type', 'size_kb', 'collection']) {
        const { status, body } = await quote({ ...whole, [name]: undefined })
        expect([status, body.details?.field], name).toEqual([400, `/${name}`])
      }
      expect((await quote(whole)).status).toBe(200)
    })
  }))
