import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { beforeAll, describe, expect, test } from 'vitest'

describe('dryRunQuery', () =>
  withService((service) => {
    let data: Data
    let root: string
    beforeAll(async () => {
      data = await createData(service())
      await data.create({
        name: 'c',
        access_policy: 'public',
        schema_definition: { fields: { n: { type: 'number' }, at: { type: 'date' } } },
      })
      await data.store('c', [
        { id: 'a', n: 1, g: 'x', at: '2026-01-01T00:00:00Z' },
        { id: 'b', n: 2, g: 'x', at: '2026-02-01T00:00:00Z' },
        { id: 'd', n: 3, g: 'y', at: '2026-03-01T00:00:00Z' },
      ])
      root = `"${data.appId}"::c`
    })
    const define = (body: object) => data.call('POST', '/queries', body)
    test('a dry run tells the bound parameters, the plan and the columns, and judges parameters as a run does', async () => {
      await define({
        name: 'tried',
        sql: `SELECT id, n FROM ${root} WHERE n >= :n`,
        parameters: [{ name: 'n', type: 'number', default: 2 }],
      })
      const { status, body } = await data.call('POST', '/queries/tried/dry-run', {})
      expect(status).toBe(200)
      expect(body).toMatchObject({
        query: 'tried',
        version: 1,
        parameters: { n: 2 },
        columns: ['id', 'n'],
        price_cap: { amount: '0' },
      })
      expect(body.plan.estimated_cost).toBeGreaterThan(0)
      expect(
        (await data.call('POST', '/queries/tried/dry-run', { parameters: { n: 'x' } })).status,
      ).toBe(400)
      expect(
        (await data.call('POST', '/queries/tried/dry-run', { parameters: { n: { $gte: 1 } } }))
          .status,
      ).toBe(400)
    })
  }))
