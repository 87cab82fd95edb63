import { limits } from '@tollbase/contract/limits'
import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { owns, relate } from '@tollbase/testing/relations'
import { createView } from '@tollbase/testing/views'
import { expect, test } from 'vitest'
import { requirePresent } from '../../base/assert.ts'
import { define } from '../../services/applications/define.ts'

describePerEngine('createRelation', (service) => {
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

  test('an application has the most relations that the limit allows, and one more is refused', async () => {
    const app = await createData(service())
    await relate(app)
    const tenant = await service().running.service.tenants.load(app.appId)
    const first = requirePresent([...tenant.data.catalog.relations.values()][0], 'a relation')
    const others = Array.from({ length: limits.relationsPerApplicationMax - 2 }, (_, at) => {
      const id = `rel_${at}`
      return { kind: 'relation', id, body: { ...first, id, child_field: `f${at}` } } as const
    })
    await define(tenant, others)
    expect((await relate(app, { child_field: 'last' })).status).toBe(201)
    const refused = await relate(app, { child_field: 'one.more' })
    expect(refused).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
    expect((await relate(app)).status, 'one that is there is no more').toBe(201)
    expect((await relate(app, { parent_collection: 'more' })).status).toBe(409)
    expect(tenant.data.catalog.byName.has('more')).toBe(false)
  })

  test('a relation that is refused for one of its ends, or for its encryption, makes neither collection', async () => {
    const app = await createData(service())
    const listNames = async () =>
      (await app.call('GET', '/collections')).body.map(({ name }: { name: string }) => name)
    await app.create({ name: 'sales' })
    await createView(app, { name: 'totals', query: { select: ['market'] } })
    const refused = await relate(app, { child_collection: 'totals' })
    expect(refused).toMatchObject({ status: 409, body: { code: 'VIEW_EXISTS' } })
    expect(await listNames()).toEqual(['sales'])
    const sealed = await createData(service())
    const body = { private_app: true, updated_at: null }
    const tenant = await service().running.service.tenants.load(sealed.appId)
    await define(tenant, [{ kind: 'encryption', id: 'encryption', body }])
    expect((await relate(sealed)).status).toBe(409)
    expect((await sealed.call('GET', '/collections')).body).toEqual([])
  })

  test.each([
    ['parent_field', ''],
    ['child_field', 'a..b'],
    ['child_collection', 'no such name'],
  ])('a relation is refused where its %s is none, and nothing is made', async (name, value) => {
    const app = await createData(service())
    const { status, body } = await relate(app, { [name]: value })
    expect(status).toBe(400)
    expect(body.details.field).toBe(`/${name}`)
    expect((await app.call('GET', '/collections')).body).toEqual([])
  })
})
