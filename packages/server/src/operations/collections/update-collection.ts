import { requirePresent } from '../../base/assert.ts'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { buildCatalog } from '../../model/catalog.ts'
import { checkSchemaDefinition } from '../../model/check-schema.ts'
import type { Definition } from '../../model/definition-entry.ts'
import { describeCollection } from '../../model/describe-collection.ts'
import { describeRelations } from '../../model/describe-relation.ts'
import { refuseResealing } from '../../model/encrypted-collections.ts'
import type { Collection } from '../../model/readable.ts'
import { addTokenFields } from '../../model/token-fields.ts'
import { requireCollection } from '../../services/access/find-sources.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { define } from '../../services/applications/define.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import { buildSchemaIndexes } from '../../services/collections/new-collection.ts'
import { refuseFreed } from '../../services/pricing/freed-targets.ts'
import type { Operation } from '../operation.ts'
import { parseCollectionSettings } from './parse-settings.ts'

export const updateCollection: Operation<
  'updateCollection',
  'world' | 'database' | 'tenants' | 'queryPlans'
> = async (call, { params, body }) => {
  const { service } = call
  await checkSchemaDefinition(body.schema_definition)
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    refuseLapsedCaller(call, params.app, { permission: 'Admin' })
    const { id, name, primary_column } = requireCollection(tenant, params.collection)
    if (body.name !== undefined && body.name !== name)
      throw makeInvalidFault('/name', 'of a collection cannot change')
    if (
      body.primary_column !== undefined &&
      body.primary_column !== null &&
      body.primary_column !== primary_column
    ) {
      throw makeInvalidFault('/primary_column', 'of a collection cannot change')
    }
    refuseOtherContent(requireCollection(tenant, params.collection), body.collection_type)
    const { catalog } = tenant.data
    const before = requirePresent(catalog.collections.get(id), 'the collection')
    const after = {
      ...before,
      ...parseCollectionSettings(body),
      updated_at: new Date(service.world.now()).toISOString(),
    }
    if (after.schema_definition !== before.schema_definition) {
      if (tenant.migrating.has(id))
        throw new Fault('CONFLICT', { message: `${name} is being migrated to another schema` })
      // Its fields decide which values of the records that are being sealed have tokens.
      refuseResealing(tenant.data.catalog, { id, name })
    }
    const collections = new Map(catalog.collections).set(id, after)
    const changed = buildCatalog({ ...catalog, collections })
    await refuseFreed(call, tenant, { after: changed, confirmed: body.confirm_free })
    const { indexes } = requireCollection(tenant, id)
    const made = buildSchemaIndexes(
      service.world,
      { ...after, indexes },
      tenant.data.catalog.nextNumber,
    )
    // No record that was checked against the old schema comes after the new one.
    await tenant.collectionLock.run([id], async () => {
      // Records that are on their way into the log have tokens of the old fields.
      if (after.encrypted === true) await tenant.chain.flushed()
      const body = addTokenFields(after, tenant.chain.head().size)
      const changes: Definition[] = [{ kind: 'collection', id, body }, ...made]
      return define(tenant, changes)
    })
    const relations = describeRelations(tenant.data.catalog, () => true).get(id)
    const stats = await readCurrentStats(service, tenant)
    return describeCollection(requireCollection(tenant, id), stats.get(id), relations)
  })
}

/** A collection has records or something else from its beginning: what it holds would not be seen as another type. */
function refuseOtherContent(
  { collection_type: before }: Collection,
  after: string | null | undefined,
): void {
  if (after === undefined || after === null || after === before) return
  const fixed = ['api', 'blob'].find((type) => type === before || type === after)
  if (fixed !== undefined)
    throw makeInvalidFault('/collection_type', `cannot change to ${fixed}, or from it`)
}
