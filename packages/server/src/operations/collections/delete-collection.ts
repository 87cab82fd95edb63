import { listRemovals } from '../../model/dependents.ts'
import { isEncrypted, refuseResealing } from '../../model/encrypted-collections.ts'
import { listRuleRemovals } from '../../model/orphaned-rules.ts'
import { requireCollection } from '../../services/access/find-sources.ts'
import { define } from '../../services/applications/define.ts'
import { dropNamedAnswers } from '../../services/requests/named-request-store.ts'
import type { Operation } from '../operation.ts'

export const deleteCollection: Operation<'deleteCollection', 'tenants' | 'database'> = async (
  { service },
  { params, body },
) => {
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    const collection = requireCollection(tenant, params.collection)
    const { id } = collection
    const { catalog } = tenant.data
    const { relations, migrations, resealings } = catalog
    refuseResealing(catalog, collection)
    const related = [...relations.values()].filter(({ parent, child }) =>
      [parent, child].includes(id),
    )
    const removals = [
      ...listRemovals(
        catalog,
        { ids: [id], name: collection.name, isNameFreed: true },
        body.cascade === true,
      ),
      ...related.map((one) => ({ kind: 'relation', id: one.id, body: undefined }) as const),
      ...(migrations.has(id) ? [{ kind: 'migration', id, body: undefined } as const] : []),
      ...(resealings.has(id) ? [{ kind: 'resealing', id, body: undefined } as const] : []),
      { kind: 'collection', id, body: undefined } as const,
    ]
    await define(tenant, [...removals, ...listRuleRemovals(catalog, removals)])
    // One that is encrypted no more may have keys, too.
    await tenant.sealer.shred([id])
    await dropNamedAnswers(service.database, params.app)
    if (!isEncrypted(collection))
      return {
        success: true,
        message: `Collection ${collection.name} is deleted; its entries stay in the chain`,
      }
    return {
      success: true,
      message: `Collection ${collection.name} is deleted with its keys; its sealed entries stay in the chain, and nobody can open them`,
    }
  })
}
