import { limits } from '@tollbase/contract/limits'
import { countValues } from '../../base/count-values.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'

/** Refuses a definition that would make a longer statement than there may be, before it is read. */
export function refuseLongDefinition(query: unknown, pointer: string): void {
  const { viewValuesMax, viewWordsMax } = limits
  if (countValues(query, viewValuesMax) > viewValuesMax)
    throw makeInvalidFault(pointer, `is made of more than ${viewValuesMax} values`)
  if (countWords(query) > viewWordsMax)
    throw makeInvalidFault(
      pointer,
      `has more than ${viewWordsMax} fields, names and operators, values not counted`,
    )
}

/**
 * Counts the names and operators that a definition becomes: texts are fields, but for literals and the values that
 * conditions compare with.
 */
function countWords(value: unknown): number {
  if (typeof value === 'string') return 1
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + countWords(item), 0)
  if (!isRecord(value)) return 0
  return Object.entries(value).reduce(
    (sum, [name, inner]) => sum + (valueMembers.has(name) ? 0 : countWords(inner)),
    1,
  )
}

const valueMembers: ReadonlySet<string> = new Set(['$literal', '$number', 'find', '$find'])
