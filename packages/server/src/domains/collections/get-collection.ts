import { isInsider } from '../access/access.ts'
import type { Operation } from '../operation.ts'
import { noStats, readStats } from './collection-store.ts'
import { collectionView } from './collection-view.ts'
import { relationsOf } from './relation-view.ts'
import { describableCollection } from './visibility.ts'

export const getCollection: Operation<'getCollection'> = async (call, { params }) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  const collection = describableCollection(call, tenant, params.collection)
  // Exact counts of what is sold are for the owner; others get bands from the preview.
  const insider = isInsider(call.caller, tenant.application)
  const relations = relationsOf(
    tenant.data.catalog,
    (one) => insider || one.policy.read === 'public',
  ).get(collection.id)
  if (!insider) return collectionView(collection, noStats, relations)
  const stats = await readStats(call.service.database, tenant.schema)
  return collectionView(collection, stats.get(collection.id), relations)
}
