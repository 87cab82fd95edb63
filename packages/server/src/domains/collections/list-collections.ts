import { isInsider } from '../access/access.ts'
import type { Operation } from '../operation.ts'
import { readStats } from './collection-store.ts'
import { collectionView } from './collection-view.ts'

export const listCollections: Operation<'listCollections'> = async (
  { service, caller },
  { params },
) => {
  const tenant = await service.tenancy.tenant(params.app)
  const insider = isInsider(caller, tenant.application)
  const stats = insider ? await readStats(service.database, tenant.schema) : new Map()
  return [...tenant.data.catalog.byName.values()]
    .filter((collection) => insider || collection.policy.read === 'public')
    .map((collection) => collectionView(collection, stats.get(collection.id)))
}
