import { isInsider } from '../access/access.ts'
import type { Operation } from '../operation.ts'
import type { CollectionState } from '../tenancy/definitions.ts'
import { readStats } from './collection-store.ts'
import { collectionView } from './collection-view.ts'
import { relationsOf } from './relation-view.ts'

export const listCollections: Operation<'listCollections'> = async (
  { service, caller },
  { params },
) => {
  const tenant = await service.tenancy.tenant(params.app)
  const insider = isInsider(caller, tenant.application)
  const stats = insider ? await readStats(service.database, tenant.schema) : new Map()
  const { catalog } = tenant.data
  const mayKnow = (collection: CollectionState) => insider || collection.policy.read === 'public'
  const relations = relationsOf(catalog, mayKnow)
  return [...catalog.byName.values()]
    .filter(mayKnow)
    .map((one) => collectionView(one, stats.get(one.id), relations.get(one.id)))
}
