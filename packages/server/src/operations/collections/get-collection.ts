import { noStats } from '../../model/collection-stats.ts'
import { collectionView } from '../../model/describe-collection.ts'
import { relationsOf } from '../../model/describe-relation.ts'
import { isOpen } from '../../model/read-level.ts'
import { mayDescribe } from '../../services/access/access.ts'
import { describableCollection } from '../../services/access/authorize-collections.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import type { Operation } from '../operation.ts'

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
