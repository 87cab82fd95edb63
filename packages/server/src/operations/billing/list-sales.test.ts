import { limits } from '@tollbase/contract/limits'
import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('listSales', () =>
  withService((service) => {
    test('a page, a cursor and a time that cannot be are refused, and an application that sold nothing has an empty list', async () => {
      const app = await createData(service())
      const most = await app.call('GET', `/sales?limit=${limits.billingLinesMax}`)
      expect([most.status, most.body]).toEqual([200, { sales: [], next_cursor: null }])
      for (const [query, field] of [
        [`limit=${limits.billingLinesMax + 1}`, '/query/limit'],
        ['cursor=x', '/query/cursor'],
        ['by=buyer&cursor=WyIxIl0', '/query/cursor'],
        ['from=2026-02-31', '/query/from'],
        ['from=2026-02-02&to=2026-02-01', '/query/from'],
        ['from=yesterday', '/query/from'],
      ]) {
        const refused = await app.call('GET', `/sales?${query}`)
        expect([refused.status, refused.body.details?.field], query).toEqual([400, field])
      }
    })
  }))
