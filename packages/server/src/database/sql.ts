import { assert } from '../base/assert.ts'

const brand: unique symbol = Symbol('sql')

/**
 * A piece of SQL: text with $1.. and the values that go with it. Made only by `sql`, so text from a user can become
 * a value but never SQL (nothing that was parsed from JSON can carry the symbol).
 */
export type SqlStatement = {
  readonly text: string
  readonly values: readonly unknown[]
  readonly [brand]: readonly Part[]
}

/** A `value` becomes a parameter; `raw` is taken as it is; `compiled` is text that already numbers its own $n. */
type Part =
  | { readonly kind: 'raw'; readonly text: string }
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'compiled'; readonly text: string; readonly values: readonly unknown[] }

/** Longest name that PostgreSQL keeps whole (NAMEDATALEN - 1). */
const nameBytesMax = 63
/** The wire protocol counts parameters in 16 bits. */
const valuesMax = 65_535

/** A statement that is rendered when it is first sent, as most are parts of others. */
class Statement implements SqlStatement {
  readonly [brand]: readonly Part[]
  #rendered: Rendered | undefined

  constructor(parts: readonly Part[]) {
    this[brand] = parts
  }

  get text(): string {
    this.#rendered ??= render(this[brand])
    return this.#rendered.text
  }

  get values(): readonly unknown[] {
    this.#rendered ??= render(this[brand])
    return this.#rendered.values
  }
}

/** sql`SELECT ${value} FROM ${sql.id(schema, table)} WHERE ${fragment}` */
export const sql = Object.assign(tag, {
  id,
  literal,
  integer,
  join,
  compiled,
  empty: statement([]),
})

function tag(strings: TemplateStringsArray, ...inputs: readonly unknown[]): SqlStatement {
  const parts: Part[] = []
  strings.forEach((text, index) => {
    if (text !== '') parts.push({ kind: 'raw', text })
    if (index >= inputs.length) return
    const input = inputs[index]
    if (isStatement(input)) {
      parts.push(...input[brand])
    } else {
      assert(input !== undefined, `the value after "${text.slice(-40)}" is undefined`)
      parts.push({ kind: 'value', value: input })
    }
  })
  return statement(parts)
}

/** A quoted, dotted name such as "schema"."table". */
function id(...names: readonly [string, ...string[]]): SqlStatement {
  for (const name of names) {
    const bytes = Buffer.byteLength(name)
    assert(
      bytes >= 1 && bytes <= nameBytesMax,
      `an SQL name has 1 to ${nameBytesMax} bytes, not ${bytes}`,
    )
    assert(!name.includes('\0'), 'an SQL name has no NUL')
  }
  return raw(names.map((name) => `"${name.replaceAll('"', '""')}"`).join('.'))
}

/** A quoted string, for places where PostgreSQL takes no parameter (DDL, index predicates). */
function literal(text: string): SqlStatement {
  assert(!text.includes('\0'), 'an SQL string has no NUL')
  const quoted = `'${text.replaceAll("'", "''")}'`
  // The E form means the same whatever standard_conforming_strings is set to.
  return raw(text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted)
}

/** A whole number as text, for statements that are to have no values. */
function integer(value: number): SqlStatement {
  assert(Number.isSafeInteger(value), 'a whole number that is exact')
  return raw(String(value))
}

/** Joins the pieces, with `separator` (SQL text) between them. */
function join(list: readonly SqlStatement[], separator = ', '): SqlStatement {
  return statement(
    list.flatMap((each, index): readonly Part[] =>
      index === 0 ? each[brand] : [{ kind: 'raw', text: separator }, ...each[brand]],
    ),
  )
}

/**
 * Wraps SQL from the project's own query compiler, with its own $1..$n. A part with values may be spliced into a
 * larger statement only before every other value, because its numbers stay as they are.
 */
function compiled(text: string, values: readonly unknown[]): SqlStatement {
  return statement([{ kind: 'compiled', text, values }])
}

function raw(text: string): SqlStatement {
  return statement([{ kind: 'raw', text }])
}

function statement(parts: readonly Part[]): SqlStatement {
  return new Statement(parts)
}

function render(parts: readonly Part[]): Rendered {
  const [only] = parts
  // A lone compiled part stays as it is.
  if (parts.length === 1 && only?.kind === 'compiled') return checked(only)
  let text = ''
  const values: unknown[] = []
  for (const part of parts) {
    if (part.kind === 'raw') {
      text += part.text
    } else if (part.kind === 'value') {
      text += `$${values.push(part.value)}`
    } else {
      assert(
        part.values.length === 0 || values.length === 0,
        'a compiled statement with values must come before other values',
      )
      text += part.text
      values.push(...part.values)
    }
  }
  return checked({ text, values })
}

type Rendered = { readonly text: string; readonly values: readonly unknown[] }

function checked(rendered: Rendered): Rendered {
  const { length } = rendered.values
  assert(length <= valuesMax, `a statement has at most ${valuesMax} values, not ${length}`)
  return rendered
}

function isStatement(input: unknown): input is SqlStatement {
  return typeof input === 'object' && input !== null && brand in input
}
