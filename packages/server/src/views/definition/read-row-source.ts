import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { findSuggestion, formatSuggestion } from '../../base/known-members.ts'
import { listRowFunctions } from '../../query/tree/functions/row.ts'
import { type DefinitionPlace, enterMember, type ReadPart } from './definition-place.ts'
import { readOperands, toOperandJson } from './operator.ts'
import { printCall } from './view-operators.ts'

/** Returns true at {"$unnest": …}, a function that gives rows. */
export function isRowSource(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && Object.keys(value).some((key) => key.startsWith('$'))
}

/** Reads a function that gives rows; `$unnest` of a list is that of ARRAY[…], of anything else that of a JSON list. */
export function readRowSource(
  object: Readonly<Record<string, unknown>>,
  place: DefinitionPlace,
): ReadPart {
  const [name = '', ...others] = Object.keys(object).filter((key) => key !== 'ordinality')
  const at = enterMember(place, name)
  const known = listRowFunctions().map((each) => `$${each}`)
  if (!known.includes(name))
    throw makeInvalidFault(
      at.pointer,
      `is no function that gives rows${formatSuggestion(findSuggestion(name, known))}`,
    )
  const [foreign] = others
  if (foreign !== undefined)
    throw makeInvalidFault(enterMember(place, foreign).pointer, `cannot stand beside ${name}`)
  const { ordinality = false } = object
  if (typeof ordinality !== 'boolean')
    throw makeInvalidFault(enterMember(place, 'ordinality').pointer, 'must be true or false')
  const operand = object[name]
  const isArray = name === '$unnest' && Array.isArray(operand)
  const call = { name, operand, object, place, at }
  const parts = readOperands(call, { least: 1, most: Number.POSITIVE_INFINITY })
  const sql = printCall(name, parts, isArray ? ['ARRAY[', ']'] : undefined)
  return {
    json: {
      [name]: isArray ? parts.map((each) => each.json) : toOperandJson(parts),
      ...(ordinality ? { ordinality } : {}),
    },
    sql: ordinality ? [sql, ' WITH ORDINALITY'] : sql,
  }
}
