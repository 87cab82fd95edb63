import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('deleteCollection', (service) => {
  test('a deleted collection is gone for readers at once, keeps its entries, and its name starts empty', async () => {
    const app = await createData(service())
    await app.create({ name: 'orders', schema_definition: { fields: { a: { index: true } } } })
    const stored = await app.store('orders', [{ id: 'a' }])
    const removed = await app.call('DELETE', '/collections/orders', { force: true })
    expect(removed.body.success).toBe(true)
    expect((await app.list('orders')).status).toBe(404)
    expect((await app.call('GET', '/collections/orders')).status).toBe(404)
    expect((await app.record('orders', 'a')).status).toBe(404)
    expect((await app.call('DELETE', '/collections/orders')).status).toBe(404)
    const { block_height: height, sequence } = stored.body.results[0]
    const proof = await app.call('GET', `/chain/proof?height=${height}&sequence=${sequence}`)
    expect(proof.body.leaf_hash).toBe(stored.body.results[0].blob_id)
    expect((await app.create({ name: 'orders' })).status).toBe(201)
    expect((await app.list('orders')).body).toMatchObject({ records: [], total: 0 })
  })
})
