import { withService } from '@tollbase/testing/per-engine'
import { createSeller, createView, perMarket } from '@tollbase/testing/views'
import { describe, expect, test } from 'vitest'

describe('deleteView', () =>
  withService((service) => {
    test('a deleted view is read no more, its name is free at once, and its source stays whole', async () => {
      const app = await createSeller(service())
      await createView(app, { name: 'totals', query: perMarket })
      const remove = () => app.call('DELETE', '/views/totals')
      expect((await remove()).body).toMatchObject({ success: true })
      expect(await remove()).toMatchObject({ status: 404, body: { code: 'VIEW_NOT_FOUND' } })
      expect((await app.list('totals')).status).toBe(404)
      expect((await app.list('sales')).body.total).toBe(3)
      await createView(app, { name: 'totals', query: perMarket })
    })
  }))
