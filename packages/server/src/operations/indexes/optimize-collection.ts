import { getIndexName } from '../../projections/index-ddl.ts'
import { requireCollection } from '../../services/access/find-sources.ts'
import { readIndexUse } from '../../services/indexes/index-store.ts'
import type { ObservedShape } from '../../services/indexes/query-statistics.ts'
import type { Operation } from '../operation.ts'
import { findMissingIndex } from './index-advice.ts'

/** Queries that take longer on average are worth a look. */
const slowMs = 50
const slowMax = 20

export const optimizeCollection: Operation<
  'optimizeCollection',
  'database' | 'tenants' | 'queryStatistics'
> = async ({ service }, { params }) => {
  const tenant = await service.tenants.load(params.app)
  const collection = requireCollection(tenant, params.collection)
  const shapes = service.queryStatistics.listShapes(collection.id)
  const use = await readIndexUse(service.database, {
    schema: tenant.schema,
    table: collection.table,
  })
  const missing = new Map<string, { text: string; count: number }>()
  for (const shape of shapes) {
    const wanted = findMissingIndex(shape, collection)
    if (wanted === undefined) continue
    const name = wanted.fields.join(',') + (wanted.type === 'btree' ? '' : ` (${wanted.type})`)
    const count = (missing.get(name)?.count ?? 0) + shape.count
    const text = `Create an index of type ${wanted.type} on ${wanted.fields.join(', ')}: ${count} queries would use it.`
    missing.set(name, { text, count })
  }
  // A unique index is used by every write, and a price index sets the price of writes.
  const unused = collection.indexes.filter(
    (index) =>
      !index.unique &&
      index.price === undefined &&
      tenant.data.isBuilt(index) &&
      (use.get(getIndexName(index))?.scans ?? 0n) === 0n,
  )
  const slow = shapes
    .filter((shape) => computeAverageMs(shape) >= slowMs)
    .sort((a, b) => b.totalMs - a.totalMs)
    .slice(0, slowMax)
  return {
    missing_indexes: [...missing.keys()],
    unused_indexes: unused.map(({ name }) => name),
    slow_queries: slow.map(describeSlowQuery),
    recommendations: [
      ...[...missing.values()].sort((a, b) => b.count - a.count).map(({ text }) => text),
      ...unused.map(
        ({ name }) => `No query has used the index ${name} so far; every write pays for it.`,
      ),
      ...slow
        .filter(({ tested }) => tested.length > 0)
        .map(
          ({ tested }) =>
            `Conditions on ${tested.join(', ')} read every record; use is, in, startsWith or search if they can express the same.`,
        ),
    ],
  }
}

function computeAverageMs({ totalMs, count }: ObservedShape): number {
  return totalMs / count
}

function describeSlowQuery(shape: ObservedShape) {
  return {
    filter: [...new Set([...shape.found, ...shape.searched, ...shape.tested])],
    ...(shape.sort !== undefined && { sort: shape.sort }),
    count: shape.count,
    average_ms: computeAverageMs(shape),
    longest_ms: shape.longestMs,
    average_rows: shape.totalRows / shape.count,
  }
}
