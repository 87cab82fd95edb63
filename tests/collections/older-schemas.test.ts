import { expect, test } from 'vitest'
import { define } from '../../packages/server/src/services/applications/define.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

/** Schemas that were accepted once, and are refused today. */
const schemas: readonly (readonly [string, object])[] = [
  ['a keyword of the wrong kind', { required: 'name' }],
  ['a reference to nothing', { anyOf: [{ $ref: '#/$defs/none' }, true] }],
  ['an address with letters of all scripts', { $id: 'https://bücher.example/' }],
  ['an address that is too long', { $id: `https://a.example/${'b'.repeat(2_000)}` }],
  ['a schema that is none', { additionalProperties: 'no', allOf: {} }],
  [
    'patterns of more than may be',
    {
      allOf: Array.from({ length: 200 }, (_, at) => ({ pattern: `^(?:abcdefghij){40}${at}` })),
    },
  ],
]

withService((service) => {
  /** Puts a schema in force as a program did that did not refuse it. */
  async function force(data: Data, schema_definition: object): Promise<void> {
    const tenant = await service().running.service.tenants.load(data.appId)
    const [collection] = tenant.data.catalog.collections.values()
    if (collection === undefined) throw new Error('there is no collection')
    await define(tenant, [
      { kind: 'collection', id: collection.id, body: { ...collection, schema_definition } },
    ])
  }

  test('schemas that an older program accepted judge records after a start by what is right in them', async () => {
    const all = await Promise.all(schemas.map(() => createData(service())))
    for (const [at, [, schema]] of schemas.entries()) {
      const data = all[at] as Data
      await data.create({ name: 'c', schema_definition: { minProperties: 1 } })
      await force(data, { properties: { n: { type: 'number' } }, ...schema })
    }
    await service().restart()
    for (const [at, [what]] of schemas.entries()) {
      const data = all[at] as Data
      const wrong = await data.store('c', [{ id: 'a', n: 'one' }])
      const right = await data.store('c', [{ id: 'b', n: 1 }])
      expect([what, wrong.status, right.status]).toEqual([what, 422, 200])
    }
  })

  test('a schema that is refused changes nothing', async () => {
    const data = await createData(service())
    const schema_definition = { properties: { n: { type: 'number' } } }
    await data.create({ name: 'c', schema_definition })
    const before = await data.call('GET', '/collections/c')
    for (const [what, schema] of schemas) {
      const put = await data.call('PUT', '/collections/c', { schema_definition: schema })
      const migrate = await data.call('POST', '/collections/c/migrate', { schema })
      const create = await data.create({ name: 'd', schema_definition: schema })
      expect([what, put.status, migrate.status, create.status]).toEqual([what, 400, 400, 400])
    }
    expect((await data.call('GET', '/collections/c')).body).toEqual(before.body)
    expect((await data.call('GET', '/collections/d')).status).toBe(404)
  })
})
