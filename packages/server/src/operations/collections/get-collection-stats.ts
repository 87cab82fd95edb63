import { noStats } from '../../model/collection-stats.ts'
import { describeCollection } from '../../model/describe-collection.ts'
import { requireCollection } from '../../services/access/find-sources.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import type { Operation } from '../operation.ts'

export const getCollectionStats: Operation<
  'getCollectionStats',
  'world' | 'database' | 'tenants'
> = async ({ service }, { params }) => {
  const tenant = await service.tenants.load(params.app)
  const collection = requireCollection(tenant, params.collection)
  const stats = (await readCurrentStats(service, tenant)).get(collection.id) ?? noStats
  const { created_at, updated_at, metadata } = describeCollection(collection, stats)
  return { created_at, updated_at, ...metadata }
}
