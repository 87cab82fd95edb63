import { indexNameOf } from '../../projections/index-ddl.ts'
import { collectionOf } from '../../services/access/authorize-collections.ts'
import { indexUse } from '../../services/indexes/index-store.ts'
import type { ObservedShape } from '../../services/indexes/query-statistics.ts'
import type { Operation } from '../operation.ts'
import { missingFields } from './index-advice.ts'

/** Queries that take longer on average are worth a look. */
const slowMs = 50
const slowMax = 20

export const optimizeCollection: Operation<'optimizeCollection'> = async (
  { service },
  { params },
) => {
  const tenant = await service.tenancy.tenant(params.app)
  const collection = collectionOf(tenant, params.collection)
  const shapes = service.queries.of(collection.id)
  const use = await indexUse(service.database, { schema: tenant.schema, table: collection.table })
  const missing = new Map<string, { text: string; count: number }>()
  for (const shape of shapes) {
    const wanted = missingFields(shape, collection)
    if (wanted === undefined) continue
    const name = wanted.fields.join(',') + (wanted.type === 'fulltext' ? ' (fulltext)' : '')
    const count = (missing.get(name)?.count ?? 0) + shape.count
    const text = `Create an index of type ${wanted.type} on ${wanted.fields.join(', ')}: ${count} queries would use it.`
    missing.set(name, { text, count })
  }
  // A unique index is in use at every write, and one with a price is what the price is made of.
  const unused = collection.indexes.filter(
    (index) =>
      !index.unique &&
      index.price === undefined &&
      tenant.data.isBuilt(index) &&
      (use.get(indexNameOf(index))?.scans ?? 0n) === 0n,
  )
  const slow = shapes
    .filter((shape) => averageMs(shape) >= slowMs)
    .sort((a, b) => b.totalMs - a.totalMs)
    .slice(0, slowMax)
  return {
    missing_indexes: [...missing.keys()],
    unused_indexes: unused.map(({ name }) => name),
    slow_queries: slow.map(slowView),
    recommendations: [
      ...[...missing.values()].sort((a, b) => b.count - a.count).map(({ text }) => text),
      ...unused.map(
        ({ name }) => `No query has used the index ${name} so far; every write pays for it.`,
      ),
      ...slow
        .filter(({ tested }) => tested.length > 0)
        .map(
          ({ tested }) =>
            `Conditions on ${tested.join(', ')} look at every record; can is, in, startsWith or search say the same?`,
        ),
    ],
  }
}

function averageMs({ totalMs, count }: ObservedShape): number {
  return totalMs / count
}

function slowView(shape: ObservedShape) {
  return {
    filter: [...new Set([...shape.found, ...shape.searched, ...shape.tested])],
    ...(shape.sort !== undefined && { sort: shape.sort }),
    count: shape.count,
    average_ms: averageMs(shape),
    longest_ms: shape.longestMs,
    average_rows: shape.totalRows / shape.count,
  }
}
