import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('updateCollection', (service) => {
  test('a change of a collection is in force with its answer, and name and primary column cannot change', async () => {
    const app = await createData(service())
    const made = await app.create({ name: 'orders', sort_column: 'time' })
    const put = (body: object) => app.call('PUT', '/collections/orders', body)
    const changed = await put({ access_policy: 'private', options: { validate: true } })
    expect(changed.body).toMatchObject({
      collection_id: made.body.collection_id,
      access_policy: 'private',
      sort_column: 'time',
    })
    expect((await app.listOpenly('orders')).status).toBe(404)
    expect((await put({ name: 'sales' })).body.details.field).toBe('/name')
    expect((await put({ primary_column: 'key' })).body.details.field).toBe('/primary_column')
    expect((await put({ name: 'orders', primary_column: 'id' })).status).toBe(200)
    expect((await app.call('PUT', '/collections/none', {})).status).toBe(404)
  })
})
