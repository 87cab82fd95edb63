import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { define } from '../../packages/server/src/services/applications/define.ts'
import { createData, type Data, makeData } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'

const owns = {
  parent_collection: 'people',
  parent_field: 'id',
  child_collection: 'orders',
  child_field: 'person.id',
}

const relate = (app: Data, body: object = {}) =>
  app.call('POST', '/relations', { ...owns, ...body })

describePerEngine('relations', (service) => {
  test('a relation makes the collections and the indexes that are missing, and says which', async () => {
    const app = await createData(service())
    await app.call('POST', '/indexes', { collection: 'orders', fields: ['person.id', 'at'] })
    const { status, body } = await relate(app)
    expect(status).toBe(201)
    expect(body).toMatchObject({
      ...owns,
      id: expect.stringMatching(/^rel_[0-9a-f]{24}$/),
      created_at: expect.any(String),
      indexes_created: { parent_index: true, child_index: false },
    })
    const indexes = (await app.call('GET', '/indexes')).body
    expect(indexes).toMatchObject([
      { collection: 'orders', fields: ['person.id', 'at'] },
      { collection: 'people', fields: ['id'], index_type: 'hash' },
    ])
  })

  test('the same relation again answers what is there, and both ends may be one collection', async () => {
    const app = await createData(service())
    const { body: first } = await relate(app)
    const { body: again } = await relate(app)
    const none = { parent_index: false, child_index: false }
    expect(again).toEqual({ ...first, indexes_created: none })
    const self = { child_collection: 'people', child_field: 'id' }
    expect((await relate(app, self)).body.indexes_created).toEqual(none)
    const boss = await relate(app, { ...self, child_field: 'boss', parent_field: 'number' })
    expect(boss.body.indexes_created).toEqual({ parent_index: true, child_index: true })
    expect((await app.call('GET', '/relations')).body).toHaveLength(3)
  })

  test('relations are listed, shown with their collections, deleted, and outlive a restart', async () => {
    const app = await createData(service())
    const { indexes_created: _, ...relation } = (await relate(app)).body
    expect((await app.call('GET', '/relations')).body).toEqual([relation])
    const shown = async (name: string) =>
      (await app.call('GET', `/collections/${name}`)).body.relations
    expect(await shown('people')).toEqual([relation])
    expect(await shown('orders')).toEqual([relation])
    await service().restart()
    const later = makeData(service(), app)
    expect((await later.call('GET', '/relations')).body).toEqual([relation])
    const gone = await later.call('DELETE', `/relations/${relation.id}`)
    expect(gone).toMatchObject({ status: 200, body: { success: true } })
    expect((await later.call('GET', '/relations')).body).toEqual([])
    expect(await later.call('DELETE', `/relations/${relation.id}`)).toMatchObject({
      status: 404,
      body: { code: 'RELATION_NOT_FOUND' },
    })
    expect((await later.call('GET', '/indexes')).body, 'the indexes stay').toHaveLength(2)
  })

  test('there are as many relations as there may be, and no more', async () => {
    const app = await createData(service())
    await relate(app)
    const tenant = await service().running.service.tenancy.loadTenant(app.appId)
    const [first] = tenant.data.catalog.relations.values()
    const others = Array.from({ length: limits.relationsPerApplicationMax - 2 }, (_, at) => {
      const id = `rel_${at}`
      return { kind: 'relation', id, body: { ...first, id, child_field: `f${at}` } } as const
    })
    await define(tenant, others)
    expect((await relate(app, { child_field: 'last' })).status).toBe(201)
    const refused = await relate(app, { child_field: 'one.more' })
    expect(refused).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
    expect((await relate(app)).status, 'one that is there is no more').toBe(201)
  })

  test('a deleted collection takes its relations along', async () => {
    const app = await createData(service())
    await relate(app)
    await app.call('DELETE', '/collections/people')
    expect((await app.call('GET', '/relations')).body).toEqual([])
    await app.create({ name: 'people' })
    expect((await app.call('GET', '/collections/orders')).body.relations).toEqual([])
  })

  test('a relation to a collection that others may not know of is not shown to them', async () => {
    const app = await createData(service())
    await app.create({ name: 'orders', access_policy: 'private' })
    for (const name of ['people', 'reviews']) await app.create({ name, access_policy: 'public' })
    await relate(app)
    await relate(app, { child_collection: 'reviews' })
    const path = `/api/apps/${app.appId}/collections`
    const open = (await service().request('GET', `${path}/people`)).body
    expect(open.relations).toMatchObject([{ child_collection: 'reviews' }])
    const [listed] = (await service().request('GET', path)).body
    expect(listed.relations).toMatchObject([{ child_collection: 'reviews' }])
  })

  test.each([
    ['parent_field', ''],
    ['child_field', 'a..b'],
    ['child_collection', 'no such name'],
  ])('a %s that is none is refused, and nothing is made', async (name, value) => {
    const app = await createData(service())
    const { status, body } = await relate(app, { [name]: value })
    expect(status).toBe(400)
    expect(body.details.field).toBe(`/${name}`)
    expect((await app.call('GET', '/collections')).body).toEqual([])
  })
})
