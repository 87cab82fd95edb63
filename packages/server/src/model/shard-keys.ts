import { makeInvalidFault } from '../base/fault.ts'
import type { Condition, FieldTest } from '../query/condition.ts'
import type { Query } from '../query/tree/query.ts'
import { findUnstatedModel } from '../query/tree/stated-keys.ts'
import type { ShardKey } from './definitions.ts'
import { findSharding, type Readable } from './readable.ts'

/** Refuses (400) a query that states none of the keys of a collection whose owner wants every query to state one. */
export function refuseUnsharded(readable: Readable, where: Condition): void {
  const sharding = findSharding(readable)
  if (sharding?.enforce_in_queries !== true) return
  if (sharding.keys.some((key) => statesKey(where, key))) return
  const names = sharding.keys.map(({ field }) => field).join(', ')
  throw makeInvalidFault(
    '/find',
    `must state a value, or a range, of one of ${names}: ${readable.name} is sharded by them`,
  )
}

/** The same for a statement in SQL, which uses a collection perhaps several times: each use states one. */
export function refuseUnshardedQuery(readables: ReadonlyMap<string, Readable>, query: Query): void {
  const findShardKeys = (model: string) => {
    const readable = readables.get(model)
    const sharding = readable && findSharding(readable)
    if (sharding?.enforce_in_queries !== true) return undefined
    return sharding.keys.map(({ field, type }) => ({ field, ranges: type !== 'hash_distributed' }))
  }
  const model = findUnstatedModel(query, findShardKeys)
  if (model === undefined) return
  const names = findShardKeys(model)
    ?.map(({ field }) => field)
    .join(', ')
  throw makeInvalidFault(
    '/sql',
    `must state a value, or a range, of one of ${names} for each ${model}, which is sharded by them: in WHERE or ON, not only inside an OR`,
  )
}

/** Returns whether all records that the condition lets through have known values of the key. */
function statesKey(condition: Condition, key: ShardKey): boolean {
  switch (condition.kind) {
    case 'never':
      return true
    case 'all':
      return condition.conditions.some((one) => statesKey(one, key))
    case 'any':
      return condition.conditions.every((one) => statesKey(one, key))
    case 'always':
    case 'not':
      return false
    default:
      return condition.path.join('.') === key.field && narrowsKey(condition, key)
  }
}

/** Returns whether the key's index answers the test; that of a hashed key answers single values alone. */
function narrowsKey(test: FieldTest, { type }: ShardKey): boolean {
  if (test.kind === 'one-of') return true
  if (test.kind === 'reference' && test.relation === '=') return true
  if (type === 'hash_distributed') return false
  return test.kind === 'range' || (test.kind === 'starts' && !test.ignoreCase)
}
