import {
  type Expression,
  findSubQuery,
  listParts,
  listRelations,
  type Query,
} from '../query/tree/query.ts'
import { listExpressions } from '../query/tree/query-sources.ts'

/**
 * Counts the SELECTs that a query becomes where each common table is written out wherever it is named, as in a view's
 * program: a few that each name the one before twice are thousands. `tables` has the counts of the tables around.
 */
export function countWrittenSelects(query: Query, tables = new Map<number, number>()): number {
  for (const table of query.with) tables.set(table.id, countWrittenSelects(table.query, tables))
  if (query.kind === 'set')
    return countWrittenSelects(query.left, tables) + countWrittenSelects(query.right, tables)
  let count = 1
  for (const relation of listRelations(query.from)) {
    if (relation.kind === 'query') count += countWrittenSelects(relation.query, tables)
    if (relation.kind === 'common') count += tables.get(relation.table) ?? 0
  }
  for (const [expression] of listExpressions(query)) count += selectsIn(expression, tables)
  return count
}

function selectsIn(expression: Expression, tables: Map<number, number>): number {
  const own = findSubQuery(expression)
  const inner = listParts(expression).reduce((sum, part) => sum + selectsIn(part, tables), 0)
  return inner + (own === undefined ? 0 : countWrittenSelects(own, tables))
}
