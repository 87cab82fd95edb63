import { makeInvalidFault } from '../../base/fault.ts'
import { extendPointer } from '../../query/field-path.ts'
import type { SentTexts } from '../../query/predefined/arguments.ts'

/** Parameters of a JSON body as they would stand in a query string. */
export function toParameterTexts(parameters: object): SentTexts {
  const entries: readonly (readonly [string, unknown])[] = Object.entries(parameters)
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (Array.isArray(value))
        return [name, value.map((item, at) => toParameterText(item, name, at))]
      return [name, toParameterText(value, name)]
    }),
  )
}

function toParameterText(value: unknown, name: string, at?: number): string {
  if (!['string', 'number', 'boolean'].includes(typeof value)) {
    const place = extendPointer('/parameters', name)
    throw makeInvalidFault(
      at === undefined ? place : extendPointer(place, at),
      'must be a string, a number or true or false',
    )
  }
  return String(value)
}
