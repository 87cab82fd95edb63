import { createData, listIds } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('deleteIndex', (service) => {
  test.each([['c_f_idx'], ['c_f_index']])(
    'an index is deleted by %s, whatever it was named',
    async (id) => {
      const app = await createData(service())
      await app.call('POST', '/indexes', { collection: 'c', field_name: 'f', name: 'my-name' })
      expect((await app.call('DELETE', `/indexes/${id}`)).body.success).toBe(true)
      expect((await app.call('DELETE', `/indexes/${id}`)).body.code).toBe('INDEX_NOT_FOUND')
      expect((await app.call('GET', '/indexes')).body).toEqual([])
    },
  )

  test.each(['c_a.b_index', 'c_a_b_index', 'c_a.b_idx'])(
    'an index on a dotted field is deleted by %s',
    async (id) => {
      const app = await createData(service())
      await app.call('POST', '/indexes', { collection: 'c', field_name: 'a.b' })
      await app.store('c', [
        { id: '1', a: { b: 7 } },
        { id: '2', a: { b: 8 } },
      ])
      expect(listIds(await app.list('c', { find: { a: { b: { is: 7 } } } }))).toEqual(['1'])
      expect((await app.call('DELETE', `/indexes/${id}`)).status).toBe(200)
      expect(listIds(await app.list('c', { find: { a: { b: { is: 7 } } } }))).toEqual(['1'])
    },
  )

  test('an index is deleted by its id, and by name on its collection, and those of other collections are not touched', async () => {
    const app = await createData(service())
    const one = await app.call('POST', '/indexes', { collection: 'c', field_name: 'f' })
    await app.call('POST', '/indexes', { collection: 'd', field_name: 'f' })
    expect((await app.call('DELETE', `/collections/d/indexes/${one.body.name}`)).status).toBe(404)
    expect((await app.call('DELETE', `/indexes/${one.body.id}`)).status).toBe(200)
    expect((await app.call('DELETE', '/collections/d/indexes/d_f_idx')).status).toBe(200)
  })

  test('a name that two collections give to a field of theirs deletes neither', async () => {
    const app = await createData(service())
    await app.call('POST', '/indexes', { collection: 'a', field_name: 'b_c', name: 'one' })
    await app.call('POST', '/indexes', { collection: 'a_b', field_name: 'c', name: 'two' })
    const reply = await app.call('DELETE', '/indexes/a_b_c_index')
    expect(reply).toMatchObject({ status: 409, body: { details: { indexes: expect.any(Array) } } })
    expect((await app.call('DELETE', '/collections/a/indexes/a_b_c_index')).status).toBe(200)
    expect((await app.call('DELETE', '/indexes/a_b_c_index')).status).toBe(200)
  })
})
