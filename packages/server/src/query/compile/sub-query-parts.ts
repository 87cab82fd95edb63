import { makeExpressionKey } from '../tree/expression-key.ts'
import { functions } from '../tree/functions/all-functions.ts'
import type { Column, Expression } from '../tree/query.ts'
import { operators } from '../tree/sql-operators.ts'

/** Returns true of a call whose arguments are printed inside of a sub-query. */
export function isSubQuery(expression: Expression): boolean {
  if (expression.kind !== 'call') return false
  const { name } = expression
  return (functions.get(name) ?? operators.get(name))?.isSubQuery === true
}

/** Makes the columns of a sub-query, `relation` to the query around it, one for each expression that is added. */
export function makeColumnList(relation: number): {
  readonly columns: readonly Column[]
  readonly add: (expression: Expression) => Expression
} {
  const columns: Column[] = []
  const places = new Map<string, number>()
  const add = (expression: Expression): Expression => {
    const name = makeExpressionKey(expression)
    const place = places.get(name) ?? columns.push({ name, expression }) - 1
    places.set(name, place)
    const { type, isWhole, zone } = expression
    return { kind: 'column', type, isWhole, zone, relation, column: place }
  }
  return { columns, add }
}
