import { assert } from '../base/assert.ts'
import { countSteps } from './steps.ts'

/** SQL text with $1.. and the values beside it. */
export type CompiledStatement = { readonly text: string; readonly values: readonly unknown[] }

/** Collects values; `add` returns the text that stands for one. */
export type Parameters = {
  readonly values: readonly unknown[]
  readonly add: (value: unknown, type: ParameterType) => string
}

type ParameterScalar =
  | 'text'
  | 'jsonb'
  | 'numeric'
  | 'float8'
  | 'boolean'
  | 'inet'
  | 'int8'
  | 'timestamp'
  | 'date'
  | 'interval'
export type ParameterType = ParameterScalar | `${ParameterScalar}[]`

export function makeParameters(): Parameters {
  const values: unknown[] = []
  return { values, add: (value, type) => `$${values.push(value)}::${type}` }
}

/** Characters of a value that are compared in a step. */
const charsPerStep = 128

/**
 * Makes parameters in which equal values of one type share a place, so that an expression written twice is the same
 * to PostgreSQL (which GROUP BY needs). The text of a statement then depends on which values are equal.
 */
export function makeSharedParameters(): Parameters {
  const { values, add } = makeParameters()
  const known = new Map<string, string>()
  return {
    values,
    add: (value, type) => {
      const key = `${type} ${JSON.stringify(value)}`
      countSteps(key.length / charsPerStep)
      const text = known.get(key) ?? add(value, type)
      known.set(key, text)
      return text
    },
  }
}

/** Makes parameters that are written as quoted text, for DDL, which takes no parameters. */
export function makeLiterals(): Parameters {
  return {
    values: [],
    add: (value, type) => {
      if (!Array.isArray(value)) return `${quoteText(String(value))}::${type}`
      return `ARRAY[${value.map((each) => quoteText(String(each))).join(', ')}]::${type}`
    },
  }
}

const plainName = /^[a-z0-9_]{1,63}$/
/** Longest name that PostgreSQL keeps whole (NAMEDATALEN - 1). */
const nameBytesMax = 63

/** Quotes a dotted name such as "schema"."table". */
export function quoteName(...names: readonly string[]): string {
  if (names.every((name) => plainName.test(name))) return `"${names.join('"."')}"`
  for (const name of names) {
    const bytes = Buffer.byteLength(name)
    assert(
      bytes >= 1 && bytes <= nameBytesMax,
      `an SQL name has 1 to ${nameBytesMax} bytes, not ${bytes}`,
    )
    assert(!name.includes('\0'), 'an SQL name has no NUL')
  }
  return names.map((name) => `"${name.replaceAll('"', '""')}"`).join('.')
}

/** Quotes a string; also used for names of fields, which must be constants for an index to apply. */
export function quoteText(text: string): string {
  assert(!text.includes('\0'), 'an SQL string has no NUL')
  const quoted = `'${text.replaceAll("'", "''")}'`
  // The E form means the same whatever standard_conforming_strings is set to.
  return text.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted
}
