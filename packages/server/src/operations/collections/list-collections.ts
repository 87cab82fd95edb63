import { describeCollection } from '../../model/describe-collection.ts'
import { describeRelations } from '../../model/describe-relation.ts'
import { isOpen } from '../../model/read-level.ts'
import type { Collection } from '../../model/readable.ts'
import { canDescribe } from '../../services/access/access.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import type { Operation } from '../operation.ts'

export const listCollections: Operation<
  'listCollections',
  'world' | 'database' | 'tenants'
> = async ({ service, caller }, { params }) => {
  const tenant = await service.tenants.load(params.app)
  const all = canDescribe(caller, tenant.application)
  const stats = all ? await readCurrentStats(service, tenant) : new Map()
  const { catalog } = tenant.data
  const mayKnow = (collection: Collection) => all || isOpen(catalog, collection)
  const relations = describeRelations(catalog, mayKnow)
  return [...catalog.byName.values()]
    .filter(mayKnow)
    .map((one) => describeCollection(one, stats.get(one.id), relations.get(one.id)))
}
