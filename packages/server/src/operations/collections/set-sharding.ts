import type { Tollbase } from '@tollbase/contract/contract'
import type { Input } from '@tollbase/contract/route'
import { requirePresent } from '../../base/assert.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { Sharding, ShardKey } from '../../model/definitions.ts'
import { describeCollection } from '../../model/describe-collection.ts'
import { describeRelations } from '../../model/describe-relation.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import { requireCollection } from '../../services/access/find-sources.ts'
import { define } from '../../services/applications/define.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import { buildLeadingIndex } from '../../services/collections/leading-index.ts'
import type { Operation } from '../operation.ts'

type Body = Input<Tollbase['setSharding']>['body']

export const setSharding: Operation<'setSharding', 'world' | 'database' | 'tenants'> = async (
  { service },
  { params, body },
) => {
  const sharding = readSharding(body)
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    const collection = requireCollection(tenant, params.collection)
    const { id } = collection
    const { catalog } = tenant.data
    const indexes: Definition[] = []
    for (const { field } of sharding?.keys ?? []) {
      const number = catalog.nextNumber
      indexes.push(
        ...buildLeadingIndex(service.world, collection, {
          field,
          type: 'btree',
          number,
          others: indexes,
        }),
      )
    }
    const { sharding: _, ...before } = requirePresent(catalog.collections.get(id), 'the collection')
    const updated_at = new Date(service.world.now()).toISOString()
    const after = { ...before, updated_at, ...(sharding !== undefined && { sharding }) }
    await define(tenant, [{ kind: 'collection', id, body: after }, ...indexes])
    const relations = describeRelations(tenant.data.catalog, () => true).get(id)
    const stats = await readCurrentStats(service, tenant)
    return describeCollection(requireCollection(tenant, id), stats.get(id), relations)
  })
}

function readSharding(body: Body): Sharding | undefined {
  const keys = body.keys.map((key, at) => readKey(key, `/keys/${at}`))
  keys.forEach(({ field }, at) => {
    if (keys.findIndex((key) => key.field === field) < at)
      throw makeInvalidFault(`/keys/${at}/field`, 'is a key already')
  })
  if (keys.length === 0) {
    if (body.enforce_in_queries === true)
      throw makeInvalidFault('/keys', 'must name a field, as queries shall state one')
    return undefined
  }
  return {
    keys,
    enforce_in_queries: body.enforce_in_queries === true,
    max_shard_size: body.max_shard_size ?? null,
  }
}

/** The clients' documents have two names for two of the types. */
const otherNames = { hashed: 'hash_distributed', time_series: 'time_range' } as const

function readKey(key: Body['keys'][number], pointer: string): ShardKey {
  const type = key.type === 'hashed' || key.type === 'time_series' ? otherNames[key.type] : key.type
  const granularity = key.granularity ?? undefined
  const buckets = key.num_buckets ?? undefined
  if (granularity !== undefined && type !== 'time_range')
    throw makeInvalidFault(`${pointer}/granularity`, 'is for keys of type time_range')
  if (buckets !== undefined && type !== 'hash_distributed')
    throw makeInvalidFault(`${pointer}/num_buckets`, 'is for keys of type hash_distributed')
  return {
    field: parseFieldPath(key.field, `${pointer}/field`).join('.'),
    type,
    ...(granularity !== undefined && { granularity }),
    ...(buckets !== undefined && { num_buckets: buckets }),
  }
}
