import { expect, test } from 'vitest'
import { createData, type Data, listIds, makeData } from '../support/data.ts'
import { describePerEngine } from '../support/per-engine.ts'

describePerEngine('collections after a restart', (service) => {
  test('definitions survive a restart, and numbers of deleted ones are not mixed up', async () => {
    const app = await createData(service())
    await app.create({ name: 'first' })
    await app.create({ name: 'second', schema_definition: { fields: { a: { index: true } } } })
    await app.call('DELETE', '/collections/second')
    await service().restart()
    await app.create({ name: 'third', schema_definition: { fields: { b: { index: true } } } })
    await app.store('third', [{ id: 'x', b: 1 }])
    await service().restart()
    expect(await names(app)).toEqual(['first', 'third'])
    expect(listIds(await app.list('third', { find: { b: 1 } }))).toEqual(['x'])
  })

  test('a restart forgets indexes of a deleted collection, as the service did before it', async () => {
    const app = await createData(service())
    await app.create({ name: 'gone', schema_definition: { fields: { n: { index: true } } } })
    await app.create({ name: 'here', schema_definition: { fields: { n: { index: true } } } })
    await app.call('DELETE', '/collections/gone')
    const before = (await app.call('GET', '/stats')).body.total_indexes
    await service().restart()
    expect((await makeData(service(), app).call('GET', '/stats')).body.total_indexes).toBe(before)
    expect(before).toBe(1)
  })
})

async function names(app: Data): Promise<string[]> {
  const { body } = await app.call('GET', '/collections')
  return body.map(({ name }: { name: string }) => name)
}
