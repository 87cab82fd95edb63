import { limits } from '@tollbase/contract/limits'
import { withService } from '@tollbase/testing/per-engine'
import { createSeller, createView, perMarket } from '@tollbase/testing/views'
import { describe, expect, test } from 'vitest'

describe('createView', () =>
  withService((service) => {
    test('a wrong setting is refused with the settings that are possible', async () => {
      const app = await createSeller(service())
      const said = async (more: object) => {
        const body = { name: 'v', source_collections: ['sales'], query: perMarket, ...more }
        const reply = await app.call('POST', '/views', body)
        expect(reply.status, reply.text).toBe(400)
        return reply.body.error
      }
      expect(await said({ refresh_mode: 'Live' })).toBe(
        '/refresh_mode must be live or lazy; did you mean "live"?',
      )
      expect(await said({ price: { per_acces: '5' } })).toBe(
        '/price/per_acces is not known here; did you mean "per_access"?',
      )
      const other = { from: 'trades', select: ['market'] }
      expect(await said({ query: other })).toMatch(
        /which the query does not read; it reads .*::trades/,
      )
    })

    test('a variable that could never be used is refused when the view is made', async () => {
      const app = await createSeller(service())
      for (const variables of [{ limit: 'total' }, { x: 'total.$where' }, { x: '.$gte' }]) {
        const body = { name: 'v', source_collections: ['sales'], query: perMarket, variables }
        expect((await app.call('POST', '/views', body)).status, JSON.stringify(variables)).toBe(400)
      }
      const misnamed = await app.call('POST', '/views', {
        name: 'v',
        source_collections: ['sales'],
        query: perMarket,
        variables: { 'no name': 'market' },
      })
      expect(misnamed).toMatchObject({
        status: 400,
        body: { details: { field: '/variables/no name' } },
      })
      expect(misnamed.body.error).toContain('must be 1-63 of a-z A-Z 0-9 _ -')
      const variables = { one: 'market', other: 'markt.$in' }
      const body = { name: 'v', source_collections: ['sales'], variables }
      const typo = await app.call('POST', '/views', { ...body, query: perMarket })
      expect(typo).toMatchObject({ status: 400, body: { details: { field: '/variables/other' } } })
      expect(typo.body.error).toContain('the view does not have; it has market, total, trades')
      // Records may have any field, and a field may be an object.
      const inner = { select: ['id', { markt: 'of' }, 'market'] }
      await createView(app, { ...body, name: 'whole', query: {} })
      await createView(app, {
        ...body,
        name: 'part',
        query: inner,
        variables: { a: 'markt.b.$gte' },
      })
    })

    test('a view has as many variables as the limit allows, and one more is refused', async () => {
      const app = await createSeller(service())
      const variables = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, n) => [`v${n}`, 'market']))
      const most = variables(limits.viewVariablesMax)
      await createView(app, { name: 'most', query: perMarket, variables: most })
      const more = {
        ...{ name: 'more', source_collections: ['sales'], query: perMarket },
        variables: variables(limits.viewVariablesMax + 1),
      }
      expect(await app.call('POST', '/views', more)).toMatchObject({
        status: 400,
        body: { details: { field: '/variables' } },
      })
    })
  }))
