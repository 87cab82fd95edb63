import { createData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

describePerEngine('validateRecord', (service) => {
  test('validation against a JSON Schema says what a store says, and stores nothing', async () => {
    const app = await createData(service())
    await app.create({
      name: 'people',
      schema_definition: {
        type: 'object',
        properties: { age: { type: 'integer', minimum: 0 } },
        required: ['age'],
      },
    })
    const refused = await app.store('people', [{ id: 'a', age: -1 }])
    expect(refused).toMatchObject({ status: 422, body: { details: { field: '/data/0/age' } } })
    const validate = async (data: unknown) =>
      (await app.call('POST', '/collections/people/validate', { data })).body
    expect(await validate({ age: 1 })).toEqual({ valid: true })
    expect(await validate([{ age: 1 }, { age: 'x' }])).toMatchObject({
      valid: false,
      errors: [expect.stringContaining('/1/age')],
    })
    expect(await validate(7)).toMatchObject({ valid: false })
    expect((await app.list('people')).body.total).toBe(0)
  })
})
