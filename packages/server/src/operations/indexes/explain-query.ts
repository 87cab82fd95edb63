import { limits } from '@tollbase/contract/limits'
import { sql } from '../../database/sql.ts'
import type { CollectionState } from '../../model/definitions.ts'
import { readStats } from '../../projections/collection-store.ts'
import { indexNameOf } from '../../projections/index-ddl.ts'
import { isAggregate } from '../../query/aggregate-request.ts'
import { type ListQuery, parseJoinedList } from '../../query/list-query.ts'
import { readableOf } from '../../services/access/authorize-collections.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Service } from '../../services/call.ts'
import { planToTell, type QueryPlan } from '../../services/indexes/explain-statement.ts'
import { rowsUpTo } from '../../services/indexes/index-store.ts'
import { type AnyQuery, anyQuestion } from '../../services/reading/prepare-any-read.ts'
import type { Operation } from '../operation.ts'
import { hintsOfList, hintsOfSources, smallMax } from './query-hints.ts'

/** What a unit of PostgreSQL's cost takes about, where nothing like the query was observed. */
const msPerCost = 0.01

/** The very statement that would answer is planned, after the same checks. */
export const explainQuery: Operation<'explainQuery'> = async (call, { params, body }) => {
  const { service } = call
  const tenant = await service.tenancy.tenant(params.app)
  const root = readableOf(tenant, params.collection)
  const { query } = body
  const question = await anyQuestion(call, query, `${params.app}::${root.name}`)
  const { limit } = question
  const { text, values } = question.compile({
    limit,
    bytesMax: limits.resultBytesMax,
    total: true,
  })
  const plan = await planToTell(service.database, tenant, {
    sources: question.sources,
    statement: sql.compiled(text, values),
  })
  const collections = new Set([root, ...question.sources.map(({ collection }) => collection)])
  const counts = await countsOf(service, tenant, collections)
  const usedOf = (collection: CollectionState) => namesOf(plan, collection)
  const list = plainList(query)
  const like = list && service.queries.like(root.id, list)
  const time = like === undefined ? plan.cost * msPerCost : like.totalMs / like.count
  const place = {
    tables: tenant,
    usedOf,
    documentsOf: ({ id }: CollectionState) => counts.get(id) ?? 0,
  }
  return {
    query,
    indexes_used: [...collections].flatMap((collection) =>
      usedOf(collection).map((name) =>
        collection.id === root.id ? name : `${collection.name}: ${name}`,
      ),
    ),
    estimated_cost: plan.cost,
    execution_time_estimate: Math.round(time * 1000) / 1000,
    optimization_hints:
      list === undefined ? hintsOfSources(question, place) : hintsOfList(list, root, place),
  }
}

/** Records by collection id; the rows of a view only as far as they are few. */
async function countsOf(
  { database }: Service,
  { schema, data }: Tenant,
  collections: ReadonlySet<CollectionState>,
): Promise<ReadonlyMap<string, number>> {
  const stats = await readStats(database, schema)
  const counts = new Map([...stats].map(([id, { documents }]) => [id, documents]))
  for (const { id, table, view } of collections)
    if (view !== undefined && data.catalog.viewsById.has(id))
      counts.set(id, await rowsUpTo(database, schema, { table, most: smallMax }))
  return counts
}

function plainList(query: AnyQuery): ListQuery | undefined {
  if (query.sql !== undefined || isAggregate(query)) return undefined
  const list = parseJoinedList(query)
  return list.joins.length === 0 ? list : undefined
}

/** As those who asked know them; the order of storing is no index of theirs. */
function namesOf({ indexes, walked }: QueryPlan, collection: CollectionState): string[] {
  const key = `${collection.table}_key`
  return indexes.flatMap((name) => {
    if (name === key && !walked.includes(key)) return [`primary key (${collection.primary_column})`]
    const index = collection.indexes.find((one) => indexNameOf(one) === name)
    return index === undefined ? [] : [index.name]
  })
}
