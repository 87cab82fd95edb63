import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('previewCollection', (service) => {
  test('a preview shows the first records, as numbers were written, and a band instead of a count', async () => {
    const app = await createData(service())
    await app.create({ name: 'notes', access_policy: 'public' })
    await app.storeText('notes', '{"id":"a","price":1.50},{"id":"b"},{"id":"c"},{"id":"d"}')
    const path = `/api/apps/${app.appId}/collections/notes/preview`
    const { body, text } = await service().request('GET', path)
    expect(body).toMatchObject({ collection: 'notes', row_count_band: '1-9' })
    expect(body.sample).toHaveLength(3)
    expect(text).toContain('"price":1.50')
  })

  test('the preview of a collection with a price shows what its owner chose, and by default no record', async () => {
    const app = await createData(service())
    const price = { per_row: '100' }
    await app.create({ name: 'sold', access_policy: { price } })
    await app.create({
      name: 'shown',
      access_policy: { price, preview: { rows: 1, fields: ['id', 'absent'] } },
    })
    for (const name of ['sold', 'shown'])
      await app.store(name, [{ id: 'a', secret: 1 }, { id: 'b' }])
    const preview = async (name: string) =>
      (await service().request('GET', `/api/apps/${app.appId}/collections/${name}/preview`)).body
    expect(await preview('sold')).toMatchObject({ sample: [], price: { per_row: '100' } })
    expect((await preview('shown')).sample).toEqual([{ id: 'a' }])
  })
})
