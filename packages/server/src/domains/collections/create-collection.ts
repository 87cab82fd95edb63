import type { Operation } from '../operation.ts'
import { checkDefinition } from './check-schema.ts'
import { collectionView } from './collection-view.ts'
import { createInGate } from './new-collection.ts'
import { given } from './settings.ts'

export const createCollection: Operation<'createCollection'> = async (
  { service },
  { params, body },
) => {
  checkDefinition(body.schema_definition)
  const tenant = await service.tenancy.tenant(params.app)
  const collection = await tenant.definitions.run(() =>
    createInGate(service, tenant, { name: body.name, ...given(body) }),
  )
  return collectionView(collection)
}
