import { makeInvalidFault } from '../base/fault.ts'
import {
  type Condition,
  type FieldPath,
  negate,
  type ReferenceRelation,
  testField,
} from './condition.ts'
import { extendPointer, parseFieldPath } from './field-path.ts'

/** The comparisons that take a field of the record joined to in place of a value. */
const relations: ReadonlyMap<string, ReferenceRelation> = new Map([
  ['is', '='],
  ['eq', '='],
  ['isNot', '='],
  ['ne', '='],
  ['greaterThan', '>'],
  ['gt', '>'],
  ['greaterThanOrEqual', '>='],
  ['gte', '>='],
  ['lessThan', '<'],
  ['lt', '<'],
  ['lessThanOrEqual', '<='],
  ['lte', '<='],
  ['in', 'in'],
  ['notIn', 'in'],
  ['includes', 'includes'],
  ['contains', 'includes'],
])
const negations: ReadonlySet<string> = new Set(['isNot', 'ne', 'notIn'])
const form = /^\$(?:data|parent)\.(.*)$/s

/** Parses the condition if the operand is `$data.<field>` or `$parent.<field>`; undefined if it is a value. */
export function parseReference(
  operator: string,
  given: { readonly path: FieldPath; readonly operand: unknown; readonly pointer: string },
): Condition | undefined {
  refuseInLists(given.operand, given.pointer)
  const name = typeof given.operand === 'string' ? form.exec(given.operand)?.[1] : undefined
  if (name === undefined) return undefined
  const relation = relations.get(operator)
  if (relation === undefined) {
    throw makeInvalidFault(
      given.pointer,
      `cannot take a field of another record; ${operator} takes a value`,
    )
  }
  const to = parseFieldPath(name, given.pointer)
  const condition = testField(given.path, { kind: 'reference', relation, to })
  return negations.has(operator) ? negate(condition) : condition
}

/** Refuses references in lists, where they would count as texts that no record has. */
function refuseInLists(operand: unknown, pointer: string): void {
  const items: readonly unknown[] = Array.isArray(operand) ? operand : []
  const at = items.findIndex((item) => typeof item === 'string' && form.test(item))
  if (at >= 0)
    throw makeInvalidFault(
      extendPointer(pointer, at),
      'is a field of another record, which cannot stand in a list',
    )
}
