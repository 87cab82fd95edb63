import { mayDescribe } from '../access/access.ts'
import type { Operation } from '../operation.ts'
import type { CollectionState } from '../tenancy/definitions.ts'
import { isOpen } from '../tenancy/openness.ts'
import { collectionView } from './collection-view.ts'
import { readCurrentStats } from './current-stats.ts'
import { relationsOf } from './relation-view.ts'

export const listCollections: Operation<'listCollections'> = async (
  { service, caller },
  { params },
) => {
  const tenant = await service.tenancy.tenant(params.app)
  const all = mayDescribe(caller, tenant.application)
  const stats = all ? await readCurrentStats(service, tenant) : new Map()
  const { catalog } = tenant.data
  const mayKnow = (collection: CollectionState) => all || isOpen(catalog, collection)
  const relations = relationsOf(catalog, mayKnow)
  return [...catalog.byName.values()]
    .filter(mayKnow)
    .map((one) => collectionView(one, stats.get(one.id), relations.get(one.id)))
}
