import { expect, test } from 'vitest'
import { createData, listIds } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'

describePerEngine('unique fields', (service) => {
  test('a unique field versions by its value: the latest wins, in one call, across calls and by either field', async () => {
    const app = await createData(service())
    await app.call('POST', '/indexes', {
      collection: 'people',
      field_name: 'email',
      unique_constraint: true,
    })
    await app.call('POST', '/indexes', {
      collection: 'people',
      field_name: 'phone',
      unique_constraint: true,
    })
    await app.store('people', [
      { id: '1', email: 'a' },
      { id: '2', email: 'a' },
      { id: '3', email: 'b', phone: 'x' },
    ])
    expect(listIds(await app.list('people'))).toEqual(['2', '3'])
    await app.store('people', [{ id: '4', email: 'a', phone: 'x' }])
    expect(listIds(await app.list('people'))).toEqual(['4'])
    await app.store('people', [{ id: '5' }, { id: '6' }, { id: '7', email: null }])
    expect(listIds(await app.list('people')), 'missing and null values are not alike').toEqual([
      '4',
      '5',
      '6',
      '7',
    ])
    await app.store('people', [
      { id: '8', email: 1 },
      { id: '9', email: '1' },
    ])
    expect(listIds(await app.list('people')), 'nor a number and its text').toContain('8')
    const { body } = await app.call('GET', '/collections/people/stats')
    expect(body.document_count).toBe(6)
  })

  test('a field that is made unique later leaves the newest record of each value live', async () => {
    const app = await createData(service())
    await app.store('users', [
      { id: 'a', mail: 'x@y' },
      { id: 'b', mail: 'x@y' },
      { id: 'c' },
      { id: 'd', mail: 'x@y' },
      { id: 'e' },
    ])
    await app.call('POST', '/indexes', { collection: 'users', field_name: 'mail', unique: true })
    expect(listIds(await app.list('users'))).toEqual(['c', 'd', 'e'])
    const { body } = await app.call('GET', '/collections/users/stats')
    expect(body.document_count).toBe(3)
  })

  test('fields that the schema marks get an index, and a unique one versions by its value', async () => {
    const app = await createData(service())
    const { body } = await app.create({
      name: 'people',
      schema_definition: {
        fields: {
          id: { type: 'string', index: true, unique: true },
          email: { type: 'string', unique: true },
          city: { type: 'string', index: true },
          note: { type: 'string' },
        },
      },
    })
    const indexes = body.indexes.map((one: { field_name: string; unique_constraint: boolean }) => [
      one.field_name,
      one.unique_constraint,
    ])
    expect(indexes).toEqual([
      ['email', true],
      ['city', false],
    ])
    await app.store('people', [{ id: 'a', email: 'x@y' }])
    await app.store('people', [{ id: 'b', email: 'x@y' }])
    expect(listIds(await app.list('people'))).toEqual(['b'])
  })

  test('a strict store refuses a value of a unique field that is there, also to fifty writers at once', async () => {
    const app = await createData(service())
    await app.call('POST', '/indexes', {
      collection: 'users',
      field_name: 'mail',
      unique_constraint: true,
    })
    await app.store('users', [{ id: 'a', mail: 'x@y' }, { id: 'n' }, { id: 'm', mail: null }])
    const refused = await app.store('users', [{ id: 'b', mail: 'x@y' }], { strict: true })
    expect(refused).toMatchObject({
      status: 409,
      body: { details: { key: 'a', fields: ['mail'] } },
    })
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, id) =>
        app.queue('users', [{ id: `w${id}`, mail: 'new@y' }], { strict: true }),
      ),
    )
    expect(replies.filter(({ status }) => status === 202)).toHaveLength(1)
    expect((await app.store('users', [{ id: 'o' }, { id: 'p' }], { strict: true })).status).toBe(
      200,
    )
  })
})
