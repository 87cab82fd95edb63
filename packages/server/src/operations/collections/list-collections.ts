import { awaitTurn } from '../../base/await-turn.ts'
import { describeCollection } from '../../model/describe-collection.ts'
import { describeRelations } from '../../model/describe-relation.ts'
import { isOpen } from '../../model/read-level.ts'
import type { Collection } from '../../model/readable.ts'
import { canDescribe } from '../../services/access/access.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import type { Operation } from '../operation.ts'

/** An application may have thousands of collections. */
const describedAtOnce = 50

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
  const described: ReturnType<typeof describeCollection>[] = []
  for (const one of [...catalog.byName.values()].filter(mayKnow)) {
    if (described.length % describedAtOnce === describedAtOnce - 1) await awaitTurn()
    described.push(describeCollection(one, stats.get(one.id), relations.get(one.id)))
  }
  return described
}
