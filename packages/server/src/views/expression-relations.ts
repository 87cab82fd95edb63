import type { Condition, FieldPath } from '../query/condition.ts'
import { type Expression, partsOf } from '../query/tree/query.ts'

/** The parts that all have to hold. */
export function conjuncts(expression: Expression | undefined): readonly Expression[] {
  if (expression === undefined) return []
  return expression.kind === 'and' ? expression.arguments.flatMap(conjuncts) : [expression]
}

/** The relations that an expression uses, sub-queries not entered. */
export function relationsIn(expression: Expression): ReadonlySet<number> {
  const inner = partsOf(expression).flatMap((part) => [...relationsIn(part)])
  switch (expression.kind) {
    case 'field':
    case 'record':
    case 'leaf':
    case 'column':
      return new Set([expression.relation])
    case 'condition': {
      const { record, relation, parent } = expression
      const own = [
        ...(record === undefined ? [relation] : []),
        ...(parent === undefined ? [] : [parent]),
      ]
      return new Set([...inner, ...own])
    }
    default:
      return new Set(inner)
  }
}

/** The equalities of fields of two records that a condition of a JSON join asks for. */
export function referencesOf(
  condition: Condition,
): readonly { readonly path: FieldPath; readonly to: FieldPath }[] {
  if (condition.kind === 'all') return condition.conditions.flatMap(referencesOf)
  if (condition.kind !== 'reference' || condition.relation !== '=') return []
  return [{ path: condition.path, to: condition.to }]
}

/** What a data set holds may change while no record does. */
export function namesDataSet(condition: Condition): boolean {
  if (condition.kind === 'all' || condition.kind === 'any')
    return condition.conditions.some(namesDataSet)
  if (condition.kind === 'not') return namesDataSet(condition.condition)
  return condition.kind === 'in-data-set'
}
