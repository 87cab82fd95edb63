import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { findSuggestion, formatSuggestion } from '../../base/known-members.ts'
import { type DefinitionPlace, enterMember, type ReadPart } from './definition-place.ts'
import { markSql } from './marked-sql.ts'
import { printNumber, printPath } from './print-names.ts'
import { getOperator, listOperatorNames } from './view-operators.ts'

/**
 * Reads an expression: a string is the path of a field; a number, a truth value and null are themselves; an object
 * has one operator, whose name begins with `$`, and the operator's further members.
 */
export function readExpression(value: unknown, place: DefinitionPlace): ReadPart {
  const { json, sql } = readUnmarked(value, place)
  return { json, sql: markSql(place.pointer, sql) }
}

function readUnmarked(value: unknown, place: DefinitionPlace): ReadPart {
  const { pointer } = place
  if (value === null) return { json: value, sql: 'NULL' }
  if (typeof value === 'boolean') return { json: value, sql: value ? 'TRUE' : 'FALSE' }
  if (typeof value === 'number') return { json: value, sql: printNumber(value, pointer) }
  if (typeof value === 'string') return { json: value, sql: printPath(value, pointer) }
  if (isRecord(value)) return readOperation(value, place)
  throw makeInvalidFault(pointer, 'is no expression: a path, a value or {"$operator": …}')
}

function readOperation(
  object: Readonly<Record<string, unknown>>,
  place: DefinitionPlace,
): ReadPart {
  const { pointer } = place
  const names = Object.keys(object)
  const [name, second] = names.filter((key) => key.startsWith('$'))
  if (name === undefined)
    throw makeInvalidFault(
      pointer,
      'is no expression, as it has no operator such as {"$sum": …}; conditions of find are {"$find": …}',
    )
  if (second !== undefined)
    throw makeInvalidFault(pointer, `has two operators, ${name} and ${second}`)
  const at = enterMember(place, name)
  const operator = getOperator(name)
  if (operator === undefined) {
    const hint = formatSuggestion(findSuggestion(name, listOperatorNames()))
    throw makeInvalidFault(at.pointer, `is not an operator${hint}`)
  }
  const { beside } = operator
  const foreign = names.find((key) => key !== name && !beside.includes(key))
  if (foreign !== undefined) {
    const possible = beside.length === 0 ? '' : `; there may be ${beside.join(', ')}`
    throw makeInvalidFault(
      enterMember(place, foreign).pointer,
      `cannot stand beside ${name}${possible}`,
    )
  }
  return operator.read({ name, operand: object[name], object, place, at })
}
