import { mayDescribe } from '../access/access.ts'
import type { Operation } from '../operation.ts'
import { isOpen } from '../tenancy/openness.ts'
import { noStats } from './collection-store.ts'
import { collectionView } from './collection-view.ts'
import { readCurrentStats } from './current-stats.ts'
import { relationsOf } from './relation-view.ts'
import { describableCollection } from './visibility.ts'

export const getCollection: Operation<'getCollection'> = async (call, { params }) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  const collection = describableCollection(call, tenant, params.collection)
  // Exact counts of what is sold are for the owner; others get bands from the preview.
  const all = mayDescribe(call.caller, tenant.application)
  const { catalog } = tenant.data
  const relations = relationsOf(catalog, (one) => all || isOpen(catalog, one)).get(collection.id)
  if (!all) return collectionView(collection, noStats, relations)
  const stats = await readCurrentStats(call.service, tenant)
  return collectionView(collection, stats.get(collection.id), relations)
}
