import { invalid } from '../../base/fault.ts'
import { parseFind, parseResolve } from '../../query/find.ts'
import { withoutDollars } from '../../query/remove-dollars.ts'
import { recordCalls } from '../../query/sql/read-record-call.ts'
import { inside, type Place, type Read } from './definition-place.ts'
import { marked } from './marked-sql.ts'
import type { Call, Operator } from './operator.ts'
import { relationSql, textSql } from './print-names.ts'
import type { Json } from './view-definition.ts'

/** Conditions of a request's `find` on a source: the query's first one, or the one that `of` names. */
export const findOperator: Operator = { beside: ['of', 'data'], read: readFindOperator }

function readFindOperator({ operand, object, place, at }: Call): Read {
  const { of, data } = object
  const { json, text } = findText(operand, at, data === undefined ? parseFind : parseResolve)
  const relation =
    of === undefined ? firstRelation(at) : relationSql(of, inside(place, 'of').pointer)
  const other = data === undefined ? '' : `, ${relationSql(data, inside(place, 'data').pointer)}`
  return {
    json: {
      $find: json,
      ...(typeof of === 'string' ? { of } : {}),
      ...(typeof data === 'string' ? { data } : {}),
    },
    sql: `${recordCalls.find}(${relation}, ${text}${other})`,
  }
}

/** The conditions of `find` on the query's first source. */
export function readFind(find: unknown, place: Place): Read {
  const { json, text } = findText(find, place, parseFind)
  const sql = `${recordCalls.find}(${firstRelation(place)}, ${text})`
  return { json, sql: marked(place.pointer, sql) }
}

function findText(find: unknown, { pointer }: Place, parse: typeof parseResolve) {
  const plain = withoutDollars(find, pointer)
  parse(plain, pointer)
  const text = JSON.stringify(plain)
  const json: Json = JSON.parse(text)
  return { json, text: textSql(text, pointer) }
}

function firstRelation({ relations, pointer }: Place): string {
  const [first] = relations
  if (first === undefined)
    throw invalid(pointer, 'has conditions on a source that has no name; write {"name": source}')
  return first
}
