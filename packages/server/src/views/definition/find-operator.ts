import { makeInvalidFault } from '../../base/fault.ts'
import { parseFind, parseResolve } from '../../query/find.ts'
import { removeDollars } from '../../query/remove-dollars.ts'
import { recordCalls } from '../../query/sql/read-record-call.ts'
import { type DefinitionPlace, enterMember, type ReadPart } from './definition-place.ts'
import { markSql } from './marked-sql.ts'
import type { Operator, OperatorCall } from './operator.ts'
import { printRelation, printText } from './print-names.ts'
import type { Json } from './view-definition.ts'

/** Reads conditions of a request's `find` on a source: the query's first one, or the one that `of` names. */
export const findOperator: Operator = { beside: ['of', 'data'], read: readFindOperator }

function readFindOperator({ operand, object, place, at }: OperatorCall): ReadPart {
  const { of, data } = object
  const { json, text } = findText(operand, at, data === undefined ? parseFind : parseResolve)
  const relation =
    of === undefined ? firstRelation(at) : printRelation(of, enterMember(place, 'of').pointer)
  const other =
    data === undefined ? '' : `, ${printRelation(data, enterMember(place, 'data').pointer)}`
  return {
    json: {
      $find: json,
      ...(typeof of === 'string' ? { of } : {}),
      ...(typeof data === 'string' ? { data } : {}),
    },
    sql: `${recordCalls.find}(${relation}, ${text}${other})`,
  }
}

/** Reads the conditions of `find` on the query's first source. */
export function readFind(find: unknown, place: DefinitionPlace): ReadPart {
  const { json, text } = findText(find, place, parseFind)
  const sql = `${recordCalls.find}(${firstRelation(place)}, ${text})`
  return { json, sql: markSql(place.pointer, sql) }
}

function findText(find: unknown, { pointer }: DefinitionPlace, parse: typeof parseResolve) {
  const plain = removeDollars(find, pointer)
  parse(plain, pointer)
  const text = JSON.stringify(plain)
  const json: Json = JSON.parse(text)
  return { json, text: printText(text, pointer) }
}

function firstRelation({ relations, pointer }: DefinitionPlace): string {
  const [first] = relations
  if (first === undefined)
    throw makeInvalidFault(
      pointer,
      'has conditions on a source that has no name; write {"name": source}',
    )
  return first
}
