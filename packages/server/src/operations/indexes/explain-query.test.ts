import { createData, type Data } from '@tollbase/testing/data'
import { people } from '@tollbase/testing/people'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

const explain = (app: Data, query: object) =>
  app.call('POST', '/collections/people/explain', { query })

describePerEngine('explainQuery', (service) => {
  test('explain tells the plan and the indexes by the names that their owner gave, and runs nothing', async () => {
    const app = await createData(service())
    await app.store('people', people)
    const before = await explain(app, { find: { age: 7 } })
    expect(before).toMatchObject({
      status: 200,
      body: {
        query: { find: { age: 7 } },
        indexes_used: [],
        estimated_cost: expect.any(Number),
        execution_time_estimate: expect.any(Number),
        optimization_hints: expect.arrayContaining([expect.stringContaining('btree on age')]),
      },
    })
    const index = { collection: 'people', field_name: 'age', name: 'by-age' }
    await app.call('POST', '/indexes', index)
    const after = (await explain(app, { find: { age: 7 }, limit: 5 })).body
    expect(after).toMatchObject({ indexes_used: ['by-age'], optimization_hints: [] })
    expect(after.estimated_cost).toBeLessThan(before.body.estimated_cost)
    expect((await explain(app, { find: { id: 'p7' } })).body.indexes_used).toEqual([
      'primary key (id)',
    ])
    // Nothing was read, so nothing was observed.
    expect((await app.call('GET', '/collections/people/optimize')).body.missing_indexes).toEqual([])
  })

  test('explain says why an index is not used', async () => {
    const app = await createData(service())
    await app.store('people', people.slice(0, 3))
    await app.call('POST', '/indexes', { collection: 'people', field_name: 'age' })
    const hints = async (query: object) =>
      (await explain(app, query)).body.optimization_hints.join()
    expect(await hints({ find: { name: { endsWith: 'x' } } })).toContain('record by record')
    expect(await hints({ include_history: true })).toContain('History')
    expect(await hints({ find: { name: { search: 'x' } } })).toContain('fulltext on name')
    expect(await hints({ sortBy: 'name' })).toContain('btree on name')
    expect(await hints({})).toContain('Without a limit')
  })

  test('explain plans joins, groups and SQL as they would be run, and tells the indexes of every collection', async () => {
    const app = await createData(service())
    await app.store('people', people)
    await app.store(
      'visits',
      people.map(({ id }, at) => ({ id: `v${at}`, person: id, n: at })),
    )
    const join = { model: 'visits', resolve: { find: { person: '$data.id' } } }
    const joined = { find: { id: 'p7', visits: join }, limit: 5 }
    const asked = [
      joined,
      { find: { id: 'p7', visits: join }, aggregate: { n: { $count: 'visits' } } },
      {
        sql: `SELECT v.n FROM "${app.appId}"::people p JOIN "${app.appId}"::visits v ON v.person = p.id WHERE p.id = $1`,
        params: ['p7'],
      },
    ]
    for (const query of asked) {
      const { status, body } = await explain(app, query)
      expect(status, JSON.stringify(body)).toBe(200)
      expect(body.estimated_cost).toBeGreaterThan(0)
      expect(body.optimization_hints.join(), JSON.stringify(query)).toContain(
        'Every record of visits is read; an index on person may help',
      )
    }
    const before = (await explain(app, joined)).body
    expect(before.indexes_used).toEqual(['primary key (id)'])
    await app.call('POST', '/indexes', { collection: 'visits', field_name: 'person', name: 'by-p' })
    for (const query of asked) {
      const { body } = await explain(app, query)
      expect(body.indexes_used, JSON.stringify(query)).toContain('visits: by-p')
      expect(body.optimization_hints.join()).not.toContain('Every record of visits')
    }
    const after = (await explain(app, joined)).body
    expect(after.estimated_cost).toBeLessThan(before.estimated_cost)
    // A later page, whose joined records are those of the first page's height, finds them by the index too.
    const walked = { ...joined, find: { visits: join }, limit: 1 }
    const { body } = await app.list('people', walked)
    const next = await explain(app, { ...walked, cursor: body.next_cursor })
    expect(next.body.indexes_used, next.text).toEqual(['visits: by-p'])
    // Nothing was run.
    expect((await app.call('GET', '/collections/visits/optimize')).body.slow_queries).toEqual([])
  })

  test("a plan over another application's records, which would tell what it holds, is refused", async () => {
    const app = await createData(service())
    const other = await createData(service())
    await app.store('people', people.slice(0, 3))
    await other.publish('theirs', people.slice(0, 3))
    const model = `${other.appId}::theirs`
    for (const query of [
      { find: { same: { model, resolve: { find: { id: '$data.id' } } } } },
      { sql: `SELECT id FROM "${other.appId}"::theirs` },
    ])
      expect(await explain(app, query)).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } })
    await other.create({ name: 'hidden', access_policy: { read: 'private' } })
    const hidden = { sql: `SELECT id FROM "${other.appId}"::hidden` }
    expect((await explain(app, hidden)).status).toBe(404)
  })

  test.each([
    ['a query that is none', { query: { find: { a: { $no: 1 } } } }, 400],
    ['no query', {}, 400],
    ['a collection that is not there', { query: {} }, 404],
  ])('an explanation of %s is refused', async (what, body, wanted) => {
    const app = await createData(service())
    await app.store('people', [{ id: 'x' }])
    const name = what.includes('not there') ? 'nobody' : 'people'
    const reply = await app.call('POST', `/collections/${name}/explain`, body)
    expect(reply.status, reply.text).toBe(wanted)
  })
})
