import { limits } from '@tollbase/contract/limits'
import { sql } from '../../database/sql.ts'
import { compileList } from '../../query/compile-list.ts'
import { type ListQuery, parseList } from '../../query/list-query.ts'
import { readStats } from '../collections/collection-store.ts'
import { collectionOf } from '../collections/visibility.ts'
import type { Operation } from '../operation.ts'
import type { CollectionState } from '../tenancy/definitions.ts'
import { indexNameOf } from '../tenancy/index-ddl.ts'
import type { Tables } from '../tenancy/tenancy.ts'
import { missingFields, servingIndex } from './index-advice.ts'
import { planOf, type QueryPlan } from './query-plan.ts'
import { shapeOf } from './query-statistics.ts'

/** What a unit of PostgreSQL's cost takes about, where nothing like the query was observed. */
const msPerCost = 0.01
/** Fewer records are read from end to end sooner than by an index. */
const smallMax = 1_000

export const explainQuery: Operation<'explainQuery'> = async ({ service }, { params, body }) => {
  const tenant = await service.tenancy.tenant(params.app)
  const collection = collectionOf(tenant, params.collection)
  const query = parseList(body.query)
  const { text, values } = compileList(query, {
    schema: tenant.schema,
    table: collection.table,
    caps: { rows: limits.rowsMax, bytes: limits.resultBytesMax },
    total: true,
    primaryColumn: collection.primary_column,
  })
  const plan = await planOf(service.database, sql.compiled(text, values))
  const like = service.queries.like(collection.id, query)
  const stats = (await readStats(service.database, tenant.schema)).get(collection.id)
  const time = like === undefined ? plan.cost * msPerCost : like.totalMs / like.count
  return {
    query: body.query,
    indexes_used: namesOf(plan, collection),
    estimated_cost: plan.cost,
    execution_time_estimate: Math.round(time * 1000) / 1000,
    optimization_hints: hintsOf(query, {
      tables: tenant,
      collection,
      plan,
      isSmall: (stats?.documents ?? 0) < smallMax,
    }),
  }
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

function hintsOf(
  query: ListQuery,
  about: { tables: Tables; collection: CollectionState; plan: QueryPlan; isSmall: boolean },
): string[] {
  const { tables, collection, plan, isSmall } = about
  const shape = shapeOf(query)
  if (shape.history) return ['History is read without any index; name the record by its key.']
  const hints: string[] = []
  const missing = missingFields(shape, collection)
  if (missing !== undefined && namesOf(plan, collection).length === 0)
    hints.push(
      `An index of ${missing.type} on ${missing.fields.join(', ')} would serve this query.`,
    )
  const serving = servingIndex(shape, collection)
  if (serving !== undefined && !tables.data.isBuilt(serving))
    hints.push(`The index ${serving.name} is being built; until then every record is looked at.`)
  else if (serving !== undefined && namesOf(plan, collection).length === 0)
    hints.push(
      isSmall
        ? 'The collection is so small that reading all of it is the fastest.'
        : `So many records match that reading all of them is faster than the index ${serving.name}.`,
    )
  if (shape.tested.length > 0)
    hints.push(
      `The conditions on ${shape.tested.join(', ')} are tested record by record; is, in, comparisons, startsWith and search use an index.`,
    )
  if (query.limit === undefined)
    hints.push('Without a limit every match is read; give one, and sort by an indexed field.')
  return hints
}
