import { present } from '../../base/assert.ts'
import { invalid } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { define } from '../tenancy/define.ts'
import { collectionView } from './collection-view.ts'
import { indexesOfSchema } from './new-collection.ts'
import { checkDefinition } from './record-schema.ts'
import { given } from './settings.ts'
import { collectionOf } from './visibility.ts'

export const updateCollection: Operation<'updateCollection'> = async (
  { service },
  { params, body },
) => {
  checkDefinition(body.schema_definition)
  const tenant = await service.tenancy.tenant(params.app)
  return tenant.definitions.run(async () => {
    const { id, name, primary_column } = collectionOf(tenant, params.collection)
    if (body.name !== undefined && body.name !== name)
      throw invalid('/name', 'of a collection cannot change')
    if (
      body.primary_column !== undefined &&
      body.primary_column !== null &&
      body.primary_column !== primary_column
    ) {
      throw invalid('/primary_column', 'of a collection cannot change')
    }
    const before = present(tenant.data.catalog.collections.get(id), 'the collection')
    const after = {
      ...before,
      ...given(body),
      updated_at: new Date(service.world.now()).toISOString(),
    }
    const { indexes } = collectionOf(tenant, id)
    await define(tenant, [
      { kind: 'collection', id, body: after },
      ...indexesOfSchema(service, { ...after, indexes }, tenant.data.catalog.nextNumber),
    ])
    return collectionView(collectionOf(tenant, id))
  })
}
