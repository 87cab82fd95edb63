import { checkDefinition } from '../../model/check-schema.ts'
import { collectionView } from '../../model/describe-collection.ts'
import { createInGate } from '../../services/collections/new-collection.ts'
import type { Operation } from '../operation.ts'
import { given } from './parse-settings.ts'

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
