import type { Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { createDeclaredData } from '@tollbase/testing/queries'
import { beforeAll, describe, expect, test } from 'vitest'

describe('dryRunQuery', () =>
  withService((service) => {
    let data: Data
    let root: string
    beforeAll(async () => {
      data = await createDeclaredData(service())
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
