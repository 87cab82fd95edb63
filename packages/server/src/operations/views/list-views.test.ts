import { withService } from '@tollbase/testing/per-engine'
import { createSeller, createView, perMarket } from '@tollbase/testing/views'
import { describe, expect, test } from 'vitest'

describe('listViews', () =>
  withService((service) => {
    test('the list has the views of its application alone, by name, and is for keys that may read', async () => {
      const [app, other] = [await createSeller(service()), await createSeller(service())]
      expect((await app.call('GET', '/views')).body).toEqual({ views: [] })
      for (const name of ['totals', 'sums']) await createView(app, { name, query: perMarket })
      await createView(other, { name: 'theirs', query: perMarket })
      const listed = (await app.call('GET', '/views')).body.views
      const names = listed.map(({ name }: { name: string }) => name)
      expect(names.toSorted()).toEqual(['sums', 'totals'])
      const path = `/api/apps/${app.appId}/views`
      for (const [headers, status] of [
        [{}, 401],
        [other.headers, 401],
      ] as const)
        expect((await service().request('GET', path, { headers })).status).toBe(status)
    })
  }))
