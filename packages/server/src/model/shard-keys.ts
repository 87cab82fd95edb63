import { invalid } from '../base/fault.ts'
import type { Condition, FieldTest } from '../query/condition.ts'
import type { Query } from '../query/tree/query.ts'
import { unstatedModel } from '../query/tree/stated-keys.ts'
import type { CollectionState, ShardKey } from './definitions.ts'

/** Refuses (400) a query that states none of the keys of a collection whose owner wants every query to state one. */
export function refuseUnsharded(collection: CollectionState, where: Condition): void {
  const { sharding } = collection
  if (sharding?.enforce_in_queries !== true) return
  if (sharding.keys.some((key) => states(where, key))) return
  const names = sharding.keys.map(({ field }) => field).join(', ')
  throw invalid(
    '/find',
    `must state a value, or a range, of one of ${names}: ${collection.name} is sharded by them`,
  )
}

/** The same for a statement in SQL, which uses a collection perhaps several times: each use states one. */
export function refuseUnshardedQuery(
  collections: ReadonlyMap<string, CollectionState>,
  query: Query,
): void {
  const keysOf = (model: string) => {
    const sharding = collections.get(model)?.sharding
    if (sharding?.enforce_in_queries !== true) return undefined
    return sharding.keys.map(({ field, type }) => ({ field, ranges: type !== 'hash_distributed' }))
  }
  const model = unstatedModel(query, keysOf)
  if (model === undefined) return
  const names = keysOf(model)
    ?.map(({ field }) => field)
    .join(', ')
  throw invalid(
    '/sql',
    `must state a value, or a range, of one of ${names} for each ${model}, which is sharded by them: in WHERE or ON, not only inside an OR`,
  )
}

/** Whether all that the condition lets through has known values of the key. */
function states(condition: Condition, key: ShardKey): boolean {
  switch (condition.kind) {
    case 'never':
      return true
    case 'all':
      return condition.conditions.some((one) => states(one, key))
    case 'any':
      return condition.conditions.every((one) => states(one, key))
    case 'always':
    case 'not':
      return false
    default:
      return condition.path.join('.') === key.field && narrows(condition, key)
  }
}

/** What the index of a key answers; of a hashed one, single values alone. */
function narrows(test: FieldTest, { type }: ShardKey): boolean {
  if (test.kind === 'one-of') return true
  if (test.kind === 'reference' && test.relation === '=') return true
  if (type === 'hash_distributed') return false
  return test.kind === 'range' || (test.kind === 'starts' && !test.ignoreCase)
}
