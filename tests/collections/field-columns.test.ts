import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { readFieldColumns } from '../../packages/server/src/projections/field-columns.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

const schema = {
  properties: {
    city: { type: 'string' },
    price: { type: 'number' },
    paid: { type: 'boolean' },
    stock: { type: 'object', properties: { place: { type: 'string' } } },
  },
}
const long = 'x'.repeat(300)
const conforming = [
  { id: '1', city: 'Graz', price: 1.5, paid: true, stock: { place: 'a' } },
  { id: '2', city: 'Graz', price: 2, paid: false, stock: { place: long } },
  { id: '3', city: 'Wien', stock: { place: `${long}y` } },
  { id: '4', price: 0.1 },
]
/** Records from before the schema. */
const others = [
  { id: '5', city: 7, price: '7', paid: 'true', stock: 'none' },
  { id: '6', city: ['Graz'], price: true, paid: 1, stock: { place: { a: 1 } } },
  { id: '7', city: 'null', price: {}, paid: null },
  { id: '8', city: null, price: null },
]
const statements = [
  'SELECT city, count(*) AS n, sum(price) AS s, avg(price) AS a, min(price) AS l, max(price) AS m FROM app::c GROUP BY city ORDER BY city, n, s',
  'SELECT stock.place AS p, count(*) AS n, count(price) AS k FROM app::c GROUP BY stock.place ORDER BY n, p',
  'SELECT paid, price, count(*) AS n, GROUPING(paid) AS g FROM app::c GROUP BY ROLLUP (paid, price) ORDER BY 4, 1, 2, 3',
  'SELECT upper(city) AS u, bool_or(paid) AS b FROM app::c GROUP BY upper(city) HAVING count(*) > 0 ORDER BY 1',
  'SELECT id, price * 2 AS d, length(stock.place) AS l FROM app::c ORDER BY id',
]

async function answer(service: TestService, app: Data, name: string): Promise<readonly string[]> {
  const answers: string[] = []
  for (const statement of statements) {
    const body = { sql: statement.replace('app::c', `"${app.appId}"::${name}`) }
    const reply = await service.request('POST', '/query/sql', { body, headers: app.headers })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.data.length).toBeGreaterThan(0)
    answers.push(JSON.stringify(reply.body.data))
  }
  return answers
}

async function countColumns(service: TestService, app: Data): Promise<number[]> {
  const tenant = await service.running.service.tenants.load(app.appId)
  const columns = await readFieldColumns(service.database, tenant.schema)
  const collections = [...tenant.data.catalog.byName.values()]
  return collections.map(({ table }) => columns.get(table)?.size ?? 0)
}

async function setSchema(app: Data, name: string): Promise<void> {
  const reply = await app.call('PUT', `/collections/${name}`, { schema_definition: schema })
  expect(reply.status, reply.text).toBe(200)
}

function auditStopped(service: TestService) {
  return service.whileStopped((config) => audit(config, () => undefined))
}

withService((service) => {
  test('declared fields have columns, and answers are the same with and without them, whatever was stored before', async () => {
    const app = await createData(service())
    await app.create({ name: 'early', schema_definition: schema })
    expect((await app.store('early', conforming)).status).toBe(200)
    await app.create({ name: 'late' })
    expect((await app.store('late', [...conforming, ...others])).status).toBe(200)
    await setSchema(app, 'late')
    expect(await countColumns(service(), app)).toEqual([4, 4])
    const byColumns = [await answer(service(), app, 'early'), await answer(service(), app, 'late')]

    const { schema: place, data } = await service().running.service.tenants.load(app.appId)
    const tables = [...data.catalog.byName.values()].map(({ table }) => table)
    const columns = await readFieldColumns(service().database, place)
    // As tables are that an earlier version of the program has made.
    await service().whileStopped(async () => {
      for (const table of tables)
        for (const column of columns.get(table)?.keys() ?? [])
          await service().database.execute(
            sql`ALTER TABLE ${sql.id(place, table)} DROP COLUMN ${sql.id(column)}`,
          )
      // The service makes them anew after its start.
      expect((await readFieldColumns(service().database, place)).size).toBe(0)
    })
    expect([await answer(service(), app, 'early'), await answer(service(), app, 'late')]).toEqual(
      byColumns,
    )
    expect(await auditStopped(service())).toMatchObject({ equal: true })
  })

  test('an encrypted collection has no such columns', async () => {
    const app = await createData(service())
    await app.create({ name: 'sealed', schema_definition: schema, encrypted: true })
    expect((await app.store('sealed', conforming)).status).toBe(200)
    expect(await countColumns(service(), app)).toEqual([0])
    expect(await auditStopped(service())).toMatchObject({ equal: true })
  })

  test('a column of other contents than the program makes is a difference of the audit', async () => {
    const app = await createData(service())
    await app.create({ name: 'c', schema_definition: schema })
    expect((await app.store('c', conforming)).status).toBe(200)
    const { schema: place, data } = await service().running.service.tenants.load(app.appId)
    const table = data.catalog.byName.get('c')?.table ?? ''
    const columns = (await readFieldColumns(service().database, place)).get(table)
    const [price] = [...(columns?.keys() ?? [])].filter((name) => name.includes('number'))
    await service().whileStopped(async () => {
      await service().database.execute(
        sql`ALTER TABLE ${sql.id(place, table)} DROP COLUMN ${sql.id(price ?? '')}`,
      )
      await service().database.execute(
        sql`ALTER TABLE ${sql.id(place, table)} ADD COLUMN ${sql.id(price ?? '')} numeric DEFAULT 5`,
      )
    })
    expect(await auditStopped(service())).toMatchObject({
      equal: false,
      difference: { part: `column ${price}` },
    })
  })
})
