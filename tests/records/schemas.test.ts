import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { ensureCollection } from '../../packages/server/src/services/collections/new-collection.ts'
import { createData } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'

describePerEngine('schemas of collections', (service) => {
  const schema = {
    fields: {
      name: { type: 'string', required: true, validation: { min: 2, max: 5, pattern: '^[A-Z]' } },
      age: { type: 'integer', validation: { min: 0 } },
      kind: { type: 'string', default: 'plain', validation: { enum: ['plain', 'fancy'] } },
      born: { type: 'date' },
      tags: { type: 'array' },
      on: { type: 'boolean' },
    },
    required: ['age'],
  }

  test.each([
    [{ age: 1 }, '/name'],
    [{ name: null, age: 1 }, '/name'],
    [{ name: 'A', age: 1 }, '/name'],
    [{ name: 'Abcdef', age: 1 }, '/name'],
    [{ name: 'abc', age: 1 }, '/name'],
    [{ name: 7, age: 1 }, '/name'],
    [{ name: 'Abc' }, '/age'],
    [{ name: 'Abc', age: 1.5 }, '/age'],
    [{ name: 'Abc', age: -1 }, '/age'],
    [{ name: 'Abc', age: 1, kind: 'odd' }, '/kind'],
    [{ name: 'Abc', age: 1, born: 'never' }, '/born'],
    [{ name: 'Abc', age: 1, tags: {} }, '/tags'],
    [{ name: 'Abc', age: 1, on: 'yes' }, '/on'],
  ])(
    'the record %j breaks the schema: the whole store is refused, naming record and field',
    async (record, field) => {
      const app = await createData(service())
      await app.create({ name: 'people', schema_definition: schema })
      const good = { id: 'good', name: 'Good', age: 1 }
      const { status, body } = await app.store('people', [good, record])
      expect(status).toBe(422)
      expect(body).toMatchObject({
        code: 'SCHEMA_VIOLATION',
        details: { record: 1, field: `/data/1${field}` },
      })
      expect((await app.list('people')).body.total).toBe(0)
    },
  )

  test('defaults of the schema are filled in and stored', async () => {
    const app = await createData(service())
    await app.create({ name: 'people', schema_definition: schema })
    await app.store('people', [{ id: 'a', name: 'Abc', age: 1 }])
    expect((await app.list('people', { find: { kind: 'plain' } })).body.records).toEqual([
      { id: 'a', name: 'Abc', age: 1, kind: 'plain' },
    ])
  })

  test('defaults make no record of more members than one that is sent may have', async () => {
    const app = await createData(service())
    const fields = { kind: { type: 'string', default: 'plain' } }
    await app.create({ name: 'wide', schema_definition: { fields } })
    const { objectMembersMax: most } = limits
    const make = (id: string, members: number) => ({
      id,
      ...Object.fromEntries(Array.from({ length: members - 1 }, (_, at) => [`m${at}`, at])),
    })
    expect((await app.store('wide', [make('a', most - 1)])).status).toBe(200)
    const { status, body } = await app.store('wide', [make('b', 1), make('c', most)])
    expect([status, body.details?.field]).toEqual([400, '/data/1'])
    expect(body.error).toContain(`more than ${most} members`)
    const own = { ...make('d', most - 1), kind: 'own' }
    expect((await app.store('wide', [own])).status).toBe(200)
  })

  test.each([
    [{ type: 'nonsense' }],
    [{ properties: { a: { type: 'string', pattern: '(' } } }],
    [{ properties: 7 }],
    [{ required: 7 }],
    [{ $ref: '#/nowhere' }],
  ])(
    'an odd JSON Schema (%j) is refused when it is set, or harmless: no store fails inside',
    async (definition) => {
      const app = await createData(service())
      const { status } = await app.create({ name: 'people', schema_definition: definition })
      expect([201, 400]).toContain(status)
      if (status !== 201) return
      const stored = await app.store('people', [{ id: 'a', a: 'x' }])
      expect([200, 422], stored.text).toContain(stored.status)
    },
  )

  test('records that were read before their collection was made as one of blobs are not stored in it', async () => {
    const app = await createData(service())
    const { world, running } = service()
    const tenant = await running.service.tenants.load(app.appId)
    let made: Promise<unknown> | undefined
    world.atFailpoints((point) => {
      if (point !== 'store.validated') return
      made ??= ensureCollection(world, tenant, { name: 'files', collection_type: 'blob' })
    })
    const { status, body } = await app.store('files', [{ id: 'a', blob_id: 'blob_of_nothing' }])
    world.atFailpoints(undefined)
    await made
    expect(status).toBe(409)
    expect(JSON.stringify(body)).toContain('Records cannot be stored in files, which is of type')
  })
})
