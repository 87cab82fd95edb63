import type { Operation } from '../operation.ts'
import { noStats } from './collection-store.ts'
import { collectionView } from './collection-view.ts'
import { readCurrentStats } from './current-stats.ts'
import { collectionOf } from './visibility.ts'

export const getCollectionStats: Operation<'getCollectionStats'> = async (
  { service },
  { params },
) => {
  const tenant = await service.tenancy.tenant(params.app)
  const collection = collectionOf(tenant, params.collection)
  const stats = (await readCurrentStats(service, tenant)).get(collection.id) ?? noStats
  const { created_at, updated_at, metadata } = collectionView(collection, stats)
  return { created_at, updated_at, ...metadata }
}
