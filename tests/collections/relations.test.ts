import { expect, test } from 'vitest'
import { createData } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'
import { relate } from '../support/relations.ts'

describePerEngine('relations of collections', (service) => {
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
})
