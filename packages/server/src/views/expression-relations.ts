import type { Condition, FieldPath } from '../query/condition.ts'
import { type Expression, listParts } from '../query/tree/query.ts'

/** Lists the parts of a conjunction. */
export function listConjuncts(expression: Expression | undefined): readonly Expression[] {
  if (expression === undefined) return []
  return expression.kind === 'and' ? expression.arguments.flatMap(listConjuncts) : [expression]
}

/** Collects the relations that an expression uses, without entering sub-queries. */
export function collectRelations(expression: Expression): ReadonlySet<number> {
  const inner = listParts(expression).flatMap((part) => [...collectRelations(part)])
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

/** Lists the equalities between fields of two records that a condition of a JSON join contains. */
export function listReferences(
  condition: Condition,
): readonly { readonly path: FieldPath; readonly to: FieldPath }[] {
  if (condition.kind === 'all') return condition.conditions.flatMap(listReferences)
  if (condition.kind !== 'reference' || condition.relation !== '=') return []
  return [{ path: condition.path, to: condition.to }]
}

/** Returns true if the condition uses a data set, whose contents may change while no record does. */
export function hasDataSet(condition: Condition): boolean {
  if (condition.kind === 'all' || condition.kind === 'any')
    return condition.conditions.some(hasDataSet)
  if (condition.kind === 'not') return hasDataSet(condition.condition)
  return condition.kind === 'in-data-set'
}
