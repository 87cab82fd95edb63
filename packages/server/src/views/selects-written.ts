import {
  type Expression,
  findSubQuery,
  listParts,
  listRelations,
  type Query,
} from '../query/tree/query.ts'
import { expressionsIn } from '../query/tree/query-sources.ts'

/**
 * How many SELECTs a query becomes where each common table is written out wherever it is named, as a view's program
 * does: a few that each name the one before twice are thousands. `tables` has those of the common tables around.
 */
export function selectsWritten(query: Query, tables = new Map<number, number>()): number {
  for (const table of query.with) tables.set(table.id, selectsWritten(table.query, tables))
  if (query.kind === 'set')
    return selectsWritten(query.left, tables) + selectsWritten(query.right, tables)
  let count = 1
  for (const relation of listRelations(query.from)) {
    if (relation.kind === 'query') count += selectsWritten(relation.query, tables)
    if (relation.kind === 'common') count += tables.get(relation.table) ?? 0
  }
  for (const [expression] of expressionsIn(query)) count += selectsIn(expression, tables)
  return count
}

function selectsIn(expression: Expression, tables: Map<number, number>): number {
  const own = findSubQuery(expression)
  const inner = listParts(expression).reduce((sum, part) => sum + selectsIn(part, tables), 0)
  return inner + (own === undefined ? 0 : selectsWritten(own, tables))
}
