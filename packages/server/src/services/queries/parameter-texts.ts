import { invalid } from '../../base/fault.ts'
import { member } from '../../query/field-path.ts'
import type { SentTexts } from '../../query/predefined/arguments.ts'

/** Parameters of a JSON body as they would stand in a query string. */
export function textsOf(parameters: object): SentTexts {
  const entries: readonly (readonly [string, unknown])[] = Object.entries(parameters)
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (Array.isArray(value)) return [name, value.map((item, at) => textOf(item, name, at))]
      return [name, textOf(value, name)]
    }),
  )
}

function textOf(value: unknown, name: string, at?: number): string {
  if (!['string', 'number', 'boolean'].includes(typeof value)) {
    const place = member('/parameters', name)
    throw invalid(
      at === undefined ? place : member(place, at),
      'must be a string, a number or true or false',
    )
  }
  return String(value)
}
