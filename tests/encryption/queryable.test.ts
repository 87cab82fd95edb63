import { expect, test } from 'vitest'
import { createData, type Data, listIds } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

const free = { config: { encryptionUpdatePrice: 0n } }

export async function createQueryable(service: TestService, name = 'notes'): Promise<Data> {
  const app = await createData(service)
  await app.create({ name })
  await turn(app, true, name)
  const schema_definition = { fields: { city: { type: 'string', index: true } } }
  const put = await app.call('PUT', `/collections/${name}`, { schema_definition })
  expect(put.status, put.text).toBe(200)
  return app
}

async function turn(app: Data, queryable: boolean, name = 'notes') {
  const set = await app.call('POST', '/encryption', {
    ...{ action: 'add', collections: [name], queryable },
  })
  expect(set.status, set.text).toBe(200)
  return set
}

function ask(service: TestService, app: Data, sql: string, more: object = {}) {
  const body = { sql, ...more }
  return service.request('POST', '/sql', { body, headers: app.headers })
}

const people = [
  { id: 'a', n: 2, city: 'Wien' },
  { id: 'b', n: 1.5e3, city: 'Graz' },
  { id: 7, n: 3, city: 'Wien' },
]

withService((service) => {
  test('a queryable collection is queried as any other, at a position that the answers state', async () => {
    const app = await createQueryable(service())
    await app.store('notes', people)
    await app.store('rooms', [{ id: 'r1', city: 'Wien' }])
    const from = `"${app.appId}"::notes`
    const groups = await ask(
      service(),
      app,
      `SELECT city, count(*) AS n FROM ${from} GROUP BY city ORDER BY city`,
    )
    expect(groups.body.data, groups.text).toEqual([
      { city: 'Graz', n: 1 },
      { city: 'Wien', n: 2 },
    ])
    const found = await app.list('notes', { find: { city: { is: 'Wien' } }, sortBy: 'n' })
    expect(found.body, found.text).toMatchObject({ records: [people[0], people[2]], total: 2 })
    expect(found.body.as_of.block_height).toBeGreaterThan(0)
    const joined = await ask(
      service(),
      app,
      `SELECT n.id FROM ${from} AS n JOIN "${app.appId}"::rooms AS r ON r.city = n.city ORDER BY n.n`,
    )
    expect(joined.body.data, joined.text).toEqual([{ id: 'a' }, { id: 7 }])
    await app.store('notes', [
      { id: 'a', n: 9, city: 'Linz' },
      { id: 'b', deleted: true },
    ])
    expect(listIds(await app.list('notes', { sortBy: 'n' }))).toEqual([7, 'a'])
    expect((await app.list('notes', { include_history: true })).body.total).toBe(5)
  })
}, free)
