import { createData, makeData } from '@tollbase/testing/data'
import { describePerEngine } from '@tollbase/testing/per-engine'
import { relate } from '@tollbase/testing/relations'
import { expect, test } from 'vitest'

describePerEngine('listRelations', (service) => {
  test('relations are listed, are shown with their collections, are deleted, and outlive a restart', async () => {
    const app = await createData(service())
    const { indexes_created: _, ...relation } = (await relate(app)).body
    expect((await app.call('GET', '/relations')).body).toEqual([relation])
    const shown = async (name: string) =>
      (await app.call('GET', `/collections/${name}`)).body.relations
    expect(await shown('people')).toEqual([relation])
    expect(await shown('orders')).toEqual([relation])
    await service().restart()
    const later = makeData(service(), app)
    expect((await later.call('GET', '/relations')).body).toEqual([relation])
    const gone = await later.call('DELETE', `/relations/${relation.id}`)
    expect(gone).toMatchObject({ status: 200, body: { success: true } })
    expect((await later.call('GET', '/relations')).body).toEqual([])
    expect(await later.call('DELETE', `/relations/${relation.id}`)).toMatchObject({
      status: 404,
      body: { code: 'RELATION_NOT_FOUND' },
    })
    expect((await later.call('GET', '/indexes')).body, 'the indexes stay').toHaveLength(2)
  })
})
