import { present } from '../../base/assert.ts'
import { Fault, invalid } from '../../base/fault.ts'
import { checkDefinition } from '../../model/check-schema.ts'
import type { Definition } from '../../model/definition-entry.ts'
import { collectionView } from '../../model/describe-collection.ts'
import { relationsOf } from '../../model/describe-relation.ts'
import { collectionOf } from '../../services/access/authorize-collections.ts'
import { define } from '../../services/applications/define.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import { indexesOfSchema } from '../../services/collections/new-collection.ts'
import type { Operation } from '../operation.ts'
import { given } from './parse-settings.ts'

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
    if (tenant.migrating.has(id) && after.schema_definition !== before.schema_definition) {
      throw new Fault('CONFLICT', { message: `${name} is being migrated to another schema` })
    }
    const { indexes } = collectionOf(tenant, id)
    const changes: Definition[] = [
      { kind: 'collection', id, body: after },
      ...indexesOfSchema(service, { ...after, indexes }, tenant.data.catalog.nextNumber),
    ]
    // No record that was checked against the old schema comes after the new one.
    await tenant.exclusion.run([id], () => define(tenant, changes))
    const relations = relationsOf(tenant.data.catalog, () => true).get(id)
    const stats = await readCurrentStats(service, tenant)
    return collectionView(collectionOf(tenant, id), stats.get(id), relations)
  })
}
