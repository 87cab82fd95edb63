import { assert } from '../base/assert.ts'

/** SQL text with $1.. and the values beside it. */
export type CompiledStatement = { readonly text: string; readonly values: readonly unknown[] }

/** Collects values; `add` gives the text that stands for one. */
export type Parameters = {
  readonly values: readonly unknown[]
  readonly add: (
    value: unknown,
    type: 'text' | 'jsonb' | 'jsonb[]' | 'text[]' | 'inet' | 'int8',
  ) => string
}

export function parameters(): Parameters {
  const values: unknown[] = []
  return { values, add: (value, type) => `$${values.push(value)}::${type}` }
}

/** Longest name that PostgreSQL keeps whole (NAMEDATALEN - 1). */
const nameBytesMax = 63

/** A quoted, dotted name such as "schema"."table". */
export function quoteName(...names: readonly string[]): string {
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

/** A quoted string; used for names of fields, which must be constants for an index to apply. */
export function quoteText(text: string): string {
  assert(!text.includes('\0'), 'an SQL string has no NUL')
  const quoted = `'${text.replaceAll("'", "''")}'`
  // The E form means the same whatever standard_conforming_strings is set to.
  return text.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted
}
