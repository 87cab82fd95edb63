import { expect, test } from 'vitest'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

withService((service) => {
  test('a collection that is named as the id of another one takes nothing from it: its readers, its batches and its owner reach the right one', async () => {
    const app = await createData(service())
    const { collection_id: id } = (await app.create({ name: 'sales', access_policy: 'public' }))
      .body
    await app.store('sales', [{ id: 'a', n: 1 }])
    const { key } = (await app.call('POST', '/keys', { permissions: ['Write'] })).body
    const body = { root: `${app.appId}::${id}`, data: [{ id: 'a', n: 'forged' }] }
    const stored = await service().request('POST', '/store?wait=true', {
      body,
      headers: { 'x-app-key': key },
    })
    expect(stored.status, stored.text).toBe(200)
    for (const name of ['sales', id]) {
      const read = await app.record(name, 'a')
      expect(read.body.record, name).toEqual({ id: 'a', n: 1 })
    }
    const updated = await app.call('PUT', '/collections/sales', { schema_definition: null })
    expect(updated.body.name, updated.text).toBe('sales')
    const operations = [{ operation: 'update', collection: 'sales', data: { id: 'a', n: 2 } }]
    const changed = await app.call('POST', '/batch', { operations })
    expect(changed.status, changed.text).toBe(200)
    expect((await app.record('sales', 'a')).body.record).toEqual({ id: 'a', n: 2 })
    const gone = await app.call('DELETE', `/collections/${id}`)
    expect(gone.body.message, gone.text).toContain('Collection sales is deleted')
  })

  test('a collection that a predefined query names by its id is deleted with the query alone, so that no namesake takes its place', async () => {
    const app = await createData(service())
    const { collection_id: id } = (await app.create({ name: 'sales', access_policy: 'public' }))
      .body
    const query = { name: 'named', sql: `SELECT id FROM "${app.appId}"::${id}`, public: true }
    expect((await app.call('POST', '/queries', query)).status).toBe(201)
    expect(await app.call('DELETE', '/collections/sales')).toMatchObject({
      status: 409,
      body: { code: 'CONFLICT', details: { queries: ['named'] } },
    })
    expect((await app.call('DELETE', '/collections/sales', { cascade: true })).status).toBe(200)
    expect((await app.call('GET', '/queries/named')).body.code).toBe('QUERY_NOT_FOUND')
  })
})
