import { noStats } from '../../model/collection-stats.ts'
import { describeCollection } from '../../model/describe-collection.ts'
import { describeRelations } from '../../model/describe-relation.ts'
import { isOpen } from '../../model/read-level.ts'
import { canDescribe } from '../../services/access/access.ts'
import { requireDescribableCollection } from '../../services/access/find-sources.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import type { Operation } from '../operation.ts'

export const getCollection: Operation<'getCollection', 'world' | 'database' | 'tenants'> = async (
  call,
  { params },
) => {
  const tenant = await call.service.tenants.load(params.app)
  const collection = requireDescribableCollection(call.caller, tenant, params.collection)
  // Exact counts of what is sold are for the owner; others get bands from the preview.
  const all = canDescribe(call.caller, tenant.application)
  const { catalog } = tenant.data
  const relations = describeRelations(catalog, (one) => all || isOpen(catalog, one)).get(
    collection.id,
  )
  if (!all) return describeCollection(collection, noStats, relations)
  const stats = await readCurrentStats(call.service, tenant)
  return describeCollection(collection, stats.get(collection.id), relations)
}
