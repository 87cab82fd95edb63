import { withService } from '@tollbase/testing/per-engine'
import { createSeller, createView, grouped, listRows, perMarket } from '@tollbase/testing/views'
import { describe, expect, test } from 'vitest'

describe('queryView', () =>
  withService((service) => {
    test('variables are conditions on fields, bound as values; a name that is no variable is refused and named', async () => {
      const app = await createSeller(service())
      const { view } = await createView(app, {
        name: 'totals',
        query: perMarket,
        refresh_mode: 'live',
        variables: { market: 'market', least: 'total.$gte', one_of: 'trades.$in' },
      })
      const get = (query: string) => app.call('GET', `/views/totals/data${query}`)
      const all = await get('')
      expect(listRows(all)).toEqual(grouped)
      expect(all.body).toMatchObject({
        count: 2,
        view: 'totals',
        lag: { blocks: 0, ms: 0 },
        as_of: { block_height: view.refresh_metadata.last_processed_block_height },
      })
      expect((await get('?market=BTC')).body.data).toEqual([grouped[0]])
      expect((await get('?least=5')).body.data).toEqual([grouped[1]])
      expect((await get('?least=1&market=BTC')).body.data).toEqual([grouped[0]])
      expect((await get('?one_of=1,5')).body.data).toEqual([grouped[1]])
      expect((await get('?sortBy=total&sortDirection=desc&limit=1&offset=1')).body.data).toEqual([
        grouped[0],
      ])
      for (const [query, field] of [
        ['?nothing=1', '/query/nothing'],
        ['?least=cheap', '/query/least'],
        ['?market=a&market=b', '/query/market'],
        ['?limit=-1', '/query/limit'],
      ] as const)
        expect(await get(query), query).toMatchObject({ status: 400, body: { details: { field } } })
      expect((await get(`?market=${encodeURIComponent('{"$gte":""}')}`)).body.data).toEqual([])
      expect((await app.call('GET', '/views/none/data')).body.code).toBe('VIEW_NOT_FOUND')
    })
  }))
