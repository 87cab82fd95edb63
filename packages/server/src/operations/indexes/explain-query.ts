import { limits } from '@tollbase/contract/limits'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { refuseOnPrivate } from '../../model/encrypted-collections.ts'
import { findPrimaryColumn, type Readable } from '../../model/readable.ts'
import { readStats } from '../../projections/collection-store.ts'
import { getIndexName } from '../../projections/index-ddl.ts'
import { isAggregate } from '../../query/aggregate-request.ts'
import { type ListQuery, parseJoinedList } from '../../query/list-query.ts'
import { requireCollectionOrView } from '../../services/access/find-sources.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { explainForCaller, type StatementPlan } from '../../services/indexes/explain-statement.ts'
import { countRowsUpTo } from '../../services/indexes/index-store.ts'
import { type AnyQuery, prepareAnyRead } from '../../services/reading/prepare-any-read.ts'
import type { ListParts } from '../../services/reading/prepare-list-read.ts'
import { makeFreeTurn } from '../../services/reading/query-turn.ts'
import { makeReader } from '../../services/reading/run-query.ts'
import type { Operation } from '../operation.ts'
import { adviseOnList, adviseOnSources, smallMax } from './query-hints.ts'

/** The approximate time of one unit of PostgreSQL's cost, used where no similar query was observed. */
const msPerCost = 0.01

/** The very statement that would answer is planned, after the same checks. */
export const explainQuery: Operation<
  'explainQuery',
  ListParts | 'queryStatistics' | 'queryRunner'
> = async (call, { params, body }) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  const root = requireCollectionOrView(tenant, params.collection)
  const { query } = body
  const request = await prepareAnyRead(call, query, `${params.app}::${root.name}`)
  for (const { readable } of request.sources) refuseOnPrivate(readable, 'a plan')
  const { limit } = request
  const { text, values } = request.compile({
    limit,
    bytesMax: limits.resultBytesMax,
    total: true,
  })
  const reader = makeReader(service.queryRunner, makeFreeTurn(call, params.app))
  const plan = await explainForCaller(reader, tenant, {
    sources: request.sources,
    statement: sql.compiled(text, values),
  })
  const collections = new Set([root, ...request.sources.map(({ readable }) => readable)])
  const counts = await countRecords(service.database, tenant, collections)
  const listUsedIndexes = (collection: Readable) => listPlanIndexes(plan, collection)
  const list = findPlainList(query)
  const like = list && service.queryStatistics.findLike(root.id, list)
  const time = like === undefined ? plan.cost * msPerCost : like.totalMs / like.count
  const place = {
    tables: tenant,
    listUsedIndexes,
    countDocuments: ({ id }: Readable) => counts.get(id) ?? 0,
  }
  return {
    query,
    indexes_used: [...collections].flatMap((collection) =>
      listUsedIndexes(collection).map((name) =>
        collection.id === root.id ? name : `${collection.name}: ${name}`,
      ),
    ),
    estimated_cost: plan.cost,
    execution_time_estimate: Math.round(time * 1000) / 1000,
    optimization_hints:
      list === undefined ? adviseOnSources(request, place) : adviseOnList(list, root, place),
  }
}

/** Counts the records by collection id; the rows of a view only up to a small number. */
async function countRecords(
  database: Database,
  { schema, data }: Tenant,
  collections: ReadonlySet<Readable>,
): Promise<ReadonlyMap<string, number>> {
  const stats = await readStats(database, schema)
  const counts = new Map([...stats].map(([id, { documents }]) => [id, documents]))
  for (const { kind, id, table } of collections)
    if (kind === 'view' && data.catalog.viewsById.has(id))
      counts.set(id, await countRowsUpTo(database, schema, { table, most: smallMax }))
  return counts
}

function findPlainList(query: AnyQuery): ListQuery | undefined {
  if (query.sql !== undefined || isAggregate(query)) return undefined
  const list = parseJoinedList(query)
  return list.joins.length === 0 ? list : undefined
}

/** Lists the indexes that the plan uses, by the names that callers know; the order of storing is not one of them. */
function listPlanIndexes({ indexes, walked }: StatementPlan, collection: Readable): string[] {
  const key = `${collection.table}_key`
  return indexes.flatMap((name) => {
    if (name === key && !walked.includes(key))
      return [`primary key (${findPrimaryColumn(collection)})`]
    const index = collection.indexes.find((one) => getIndexName(one) === name)
    return index === undefined ? [] : [index.name]
  })
}
