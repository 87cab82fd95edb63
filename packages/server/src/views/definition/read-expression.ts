import { invalid } from '../../base/fault.ts'
import { nearest } from '../../base/find-nearest.ts'
import { isRecord } from '../../base/is-record.ts'
import { inside, type Place, type Read } from './definition-place.ts'
import { marked } from './marked-sql.ts'
import { operatorNamed, operatorNames } from './operators.ts'
import { numberSql, pathSql } from './print-names.ts'

/**
 * An expression: a string is the path of a field, a number, a truth value and null are themselves, and an object has
 * one operator, whose name begins with `$`, and what belongs to it beside it.
 */
export function readExpression(value: unknown, place: Place): Read {
  const { json, sql } = readUnmarked(value, place)
  return { json, sql: marked(place.pointer, sql) }
}

function readUnmarked(value: unknown, place: Place): Read {
  const { pointer } = place
  if (value === null) return { json: value, sql: 'NULL' }
  if (typeof value === 'boolean') return { json: value, sql: value ? 'TRUE' : 'FALSE' }
  if (typeof value === 'number') return { json: value, sql: numberSql(value, pointer) }
  if (typeof value === 'string') return { json: value, sql: pathSql(value, pointer) }
  if (isRecord(value)) return readOperation(value, place)
  throw invalid(pointer, 'is no expression: a path, a value or {"$operator": …}')
}

function readOperation(object: Readonly<Record<string, unknown>>, place: Place): Read {
  const { pointer } = place
  const names = Object.keys(object)
  const [name, second] = names.filter((key) => key.startsWith('$'))
  if (name === undefined)
    throw invalid(
      pointer,
      'is no expression, as it has no operator such as {"$sum": …}; conditions of find are {"$find": …}',
    )
  if (second !== undefined) throw invalid(pointer, `has two operators, ${name} and ${second}`)
  const at = inside(place, name)
  const operator = operatorNamed(name)
  if (operator === undefined) {
    const { word } = nearest(name, operatorNames())
    throw invalid(at.pointer, `is not an operator; did you mean ${word}?`)
  }
  const { beside } = operator
  const foreign = names.find((key) => key !== name && !beside.includes(key))
  if (foreign !== undefined) {
    const possible = beside.length === 0 ? '' : `; there may be ${beside.join(', ')}`
    throw invalid(inside(place, foreign).pointer, `cannot stand beside ${name}${possible}`)
  }
  return operator.read({ name, operand: object[name], object, place, at })
}
