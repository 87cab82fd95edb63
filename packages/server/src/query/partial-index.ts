import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../base/fault.ts'
import { compileCondition } from './compile-condition.ts'
import type { Condition } from './condition.ts'
import { parseFind } from './find.ts'
import { makeLiterals } from './sql-text.ts'

/**
 * Parses the condition of a partial index, or throws a 400: only comparisons, as PostgreSQL must be able to infer
 * them from a query.
 */
export function parsePartial(where: unknown, pointer: string): Condition {
  const condition = parseFind(where, pointer)
  const { values, foreign } = weigh(condition)
  if (foreign !== undefined) {
    throw makeInvalidFault(
      pointer,
      `has the test "${foreign}"; a partial index takes is, in, comparisons, between, startsWith, isNull and exists`,
    )
  }
  if (values > limits.partialIndexValuesMax)
    throw makeInvalidFault(
      pointer,
      `compares with more than ${limits.partialIndexValuesMax} values`,
    )
  return condition
}

/**
 * Refuses (400) a condition whose SQL is long: every connection that reads the collection keeps it, parsed, in some ten times
 * the room. Only for new ones; an index that was defined before stays what it is.
 */
export function refuseLongPartial(condition: Condition, pointer: string): void {
  const { partialIndexCharsMax: most } = limits
  const { length } = printPredicate(condition)
  if (length > most)
    throw makeInvalidFault(
      pointer,
      `takes ${length} characters of SQL, and may take ${most}; test fewer fields, name the values of one field in a list (in), or compare with shorter texts`,
    )
}

/** Prints a condition that `parsePartial` accepted, for DDL: its values are quoted. */
export function printPredicate(condition: Condition): string {
  return compileCondition(condition, { record: 'data', parameters: makeLiterals() })
}

type Weight = { readonly values: number; readonly foreign: string | undefined }

function weigh(condition: Condition): Weight {
  switch (condition.kind) {
    case 'always':
    case 'never':
      return { values: 0, foreign: undefined }
    case 'not':
      return weigh(condition.condition)
    case 'all':
    case 'any': {
      const parts = condition.conditions.map(weigh)
      return {
        values: parts.reduce((sum, { values }) => sum + values, 0),
        foreign: parts.find(({ foreign }) => foreign !== undefined)?.foreign,
      }
    }
    case 'one-of':
      return { values: condition.values.length, foreign: undefined }
    case 'null':
    case 'exists':
    case 'range':
      return { values: 1, foreign: undefined }
    case 'starts':
      return { values: 1, foreign: condition.ignoreCase ? 'ignoring case' : undefined }
    default:
      return { values: 1, foreign: condition.kind }
  }
}
