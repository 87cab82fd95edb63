import type { FieldCondition, Scalar } from './condition.ts'
import type { FieldColumn } from './field-column.ts'
import { columnTypes } from './field-column.ts'
import { isLong } from './index-key.ts'
import type { Parameters } from './sql-text.ts'

/**
 * Prints a field's condition as a test of its column, given as SQL, for the rows in which that is not NULL. Undefined
 * where the column does not decide: for other tests than of values and beginnings, and for texts that are no shorter
 * than the cut of the column.
 */
export function printColumnTest(
  condition: FieldCondition,
  { column, type }: { readonly column: string; readonly type: FieldColumn['type'] },
  parameters: Parameters,
): string | undefined {
  switch (condition.kind) {
    case 'one-of': {
      if (condition.values.some(isLong)) return undefined
      // A column has no values of other types, so it equals none.
      const alike = condition.values.filter((value) => getType(value) === type)
      return alike.length === 0
        ? 'FALSE'
        : `${column} = ANY (${parameters.add(alike.map(String), arrayTypes[type])})`
    }
    case 'range': {
      const ends = [
        ...(condition.from ? [{ ...condition.from, sign: '>' }] : []),
        ...(condition.to ? [{ ...condition.to, sign: '<' }] : []),
      ]
      if (ends.some(({ value }) => isLong(value))) return undefined
      if (ends.some(({ value }) => getType(value) !== type)) return 'FALSE'
      const tests = ends.map(
        ({ value, sign, inclusive }) =>
          `${column} ${sign}${inclusive ? '=' : ''} ${parameters.add(String(value), columnTypes[type])}`,
      )
      return `(${tests.join(' AND ')})`
    }
    case 'starts':
      if (condition.ignoreCase || isLong(condition.text)) return undefined
      return type === 'text'
        ? `starts_with(${column}, ${parameters.add(condition.text, 'text')})`
        : 'FALSE'
    default:
      return undefined
  }
}

const arrayTypes = { number: 'numeric[]', text: 'text[]', boolean: 'boolean[]' } as const

function getType(value: Scalar): FieldColumn['type'] {
  if (typeof value === 'string') return 'text'
  return typeof value === 'number' ? 'number' : 'boolean'
}
