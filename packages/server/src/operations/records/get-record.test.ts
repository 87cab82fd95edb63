import { limits } from '@tollbase/contract/limits'
import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('getRecord', (service) => {
  test.each([
    'x'.repeat(limits.recordKeyCharsMax),
    'é'.repeat(limits.recordKeyCharsMax),
    'a/b?c#d%e f',
    '../..',
    "'; DROP TABLE c_1; --",
    '🦀',
    '__proto__',
  ])('the id %s can be stored and read by its address', async (id) => {
    const app = await createData(service())
    expect((await app.store('notes', [{ id }])).status).toBe(200)
    const read = await app.record('notes', id)
    expect(read.status).toBe(200)
    expect(read.body.record.id).toBe(id)
    expect((await app.record('notes', id, '/history')).body.versions).toHaveLength(1)
  })

  test('the primary column of the collection is the identity, be it text or a number', async () => {
    const app = await createData(service())
    await app.create({ name: 'orders', primary_column: 'number' })
    const stored = await app.store('orders', [{ number: 7, id: 'x' }, { id: 'x' }])
    expect(stored.body.results[0].id).toBe('7')
    await app.store('orders', [{ number: 7, id: 'y' }])
    expect((await app.list('orders', { find: { number: 7 } })).body.records).toEqual([
      { number: 7, id: 'y' },
    ])
    expect((await app.record('orders', '7')).body.record).toEqual({ number: 7, id: 'y' })
  })

  test('a record of a private collection is there for keys of its application, and for nobody else', async () => {
    const app = await createData(service())
    await app.create({ name: 'orders', access_policy: 'private' })
    await app.store('orders', [{ id: 'a' }])
    const other = await createData(service())
    const path = `/api/apps/${app.appId}/collections/orders/records`
    for (const headers of [{}, other.headers])
      for (const key of ['a', 'none'])
        expect(await service().request('GET', `${path}/${key}`, { headers })).toMatchObject({
          status: 404,
          body: { code: 'COLLECTION_NOT_FOUND' },
        })
    expect((await app.record('orders', 'a')).body.record).toEqual({ id: 'a' })
    expect((await app.record('orders', 'none')).body.code).toBe('RECORD_NOT_FOUND')
  })

  test('a record that is read by its key is held to the offered fields too, and so is a preview', async () => {
    const app = await createData(service())
    const offered = { select: ['id', 'name'] }
    await app.create({ name: 'cities', access_policy: { read: 'public', offered } })
    await app.store('cities', [{ id: 'a', name: 'Wien', mayor: 'L' }])
    const path = `/api/apps/${app.appId}/collections/cities/records/a`
    expect(await service().request('GET', path)).toMatchObject({
      status: 403,
      body: { code: 'FIELD_NOT_OFFERED' },
    })
    expect((await app.record('cities', 'a')).status).toBe(200)
    const preview = await service().request(
      'GET',
      `/api/apps/${app.appId}/collections/cities/preview`,
    )
    expect(preview.text).not.toContain('mayor')
  })
})
