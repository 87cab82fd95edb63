import { checkSchemaDefinition } from '../../model/check-schema.ts'
import { describeCollection } from '../../model/describe-collection.ts'
import { createCollectionLocked } from '../../services/collections/new-collection.ts'
import type { Operation } from '../operation.ts'
import { parseCollectionSettings } from './parse-settings.ts'

export const createCollection: Operation<'createCollection', 'world' | 'tenants'> = async (
  { service },
  { params, body },
) => {
  await checkSchemaDefinition(body.schema_definition)
  const tenant = await service.tenants.load(params.app)
  const collection = await tenant.definitions.run(() =>
    createCollectionLocked(service.world, tenant, {
      name: body.name,
      ...parseCollectionSettings(body),
    }),
  )
  return describeCollection(collection)
}
