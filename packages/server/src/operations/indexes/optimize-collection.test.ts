import { createData } from '@tollbase/testing/data'
import { people } from '@tollbase/testing/people'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { send } from '@tollbase/testing/service'
import { expect, test } from 'vitest'

describePerEngine('optimizeCollection', (service) => {
  test('optimize names missing indexes by recent queries, and unused ones by what the database counts', async () => {
    const app = await createData(service())
    await app.store('people', people)
    await app.call('POST', '/indexes', { collection: 'people', field_name: 'age' })
    await app.call('POST', '/indexes', { collection: 'people', field_name: 'name' })
    for (let at = 0; at < 3; at++) {
      await app.list('people', { find: { 'city.name': `city ${at}` } })
      await app.list('people', { find: { id: { in: ['p1', 'p2'] } }, limit: 2 })
      await app.list('people', { find: { 'city.name': { search: 'city' } } })
      await app.list('people', { find: { name: { includes: 'x' } } })
      await app.list('people', { find: { text: { includes: 'xyz' } } })
      await app.list('people', { find: { age: 7 } })
    }
    const advice = (await app.call('GET', '/collections/people/optimize')).body
    expect(advice.missing_indexes).toEqual(['city.name', 'city.name (fulltext)', 'text (trigram)'])
    expect(advice.unused_indexes).toContain('people_name_idx')
    expect(advice.recommendations.join()).toContain('3 queries')
    expect(advice.slow_queries).toEqual(expect.any(Array))
    // Values are not part of a query's shape.
    expect(JSON.stringify(advice)).not.toContain('city 1')
    // Sessions report their counts a little later.
    await expect
      .poll(async () => (await app.call('GET', '/collections/people/optimize')).body.unused_indexes)
      .toEqual(['people_name_idx'])
  })

  test('queries of others lead to advice for the owner, and others get none', async () => {
    const app = await createData(service())
    await app.publish('people', people.slice(0, 10))
    await app.listOpenly('people', { find: { age: 3 } })
    expect((await app.call('GET', '/collections/people/optimize')).body.missing_indexes).toEqual([
      'age',
    ])
    const at = `/api/apps/${app.appId}/collections/people`
    for (const path of ['/optimize', '/indexes/x/status', '/indexes/x/statistics'])
      expect((await send(service().url, { method: 'GET', path: at + path })).status).toBe(401)
  })
})
