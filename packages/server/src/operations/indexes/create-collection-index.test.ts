import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('createCollectionIndex', (service) => {
  test('an index is made on the own path of its collection, in the words of its dialect', async () => {
    const app = await createData(service())
    const made = await app.call('POST', '/collections/c/indexes', {
      field_name: 'email',
      index_config: { index_type: 'Primary' },
    })
    expect(made.body).toMatchObject({ collection: 'c', unique_constraint: true })
  })

  test('an odd collection in the address is refused, and makes nothing', async () => {
    const app = await createData(service())
    const reply = await app.call('POST', '/collections/a%20b/indexes', { field_name: 'f' })
    expect(reply.status, reply.text).toBe(400)
    expect((await app.call('GET', '/collections')).body).toEqual([])
  })
})
