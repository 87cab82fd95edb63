import { limits } from '@tollbase/contract/limits'
import { invalid } from '../base/fault.ts'
import { compileCondition } from './compile-condition.ts'
import type { Condition } from './condition.ts'
import { parseFind } from './find.ts'
import { literals } from './sql-text.ts'

/** The condition of a partial index, or a 400: only comparisons, which PostgreSQL can see to follow from a query. */
export function parsePartial(where: unknown, pointer: string): Condition {
  const condition = parseFind(where, pointer)
  const { values, foreign } = weigh(condition)
  if (foreign !== undefined) {
    throw invalid(
      pointer,
      `has the test "${foreign}"; a partial index takes is, in, comparisons, between, startsWith, isNull and exists`,
    )
  }
  if (values > limits.partialIndexValuesMax)
    throw invalid(pointer, `compares with more than ${limits.partialIndexValuesMax} values`)
  return condition
}

/** SQL of a condition that `parsePartial` took, for DDL: its values are quoted. */
export function partialPredicate(condition: Condition): string {
  return compileCondition(condition, { record: 'data', parameters: literals() })
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
