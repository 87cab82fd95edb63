import { limits } from '@tollbase/contract/limits'
import { assert } from '../base/assert.ts'
import type { FieldPath, Scalar } from './condition.ts'
import { getOperatorClass, printIndexedVector, vectorExtension } from './single-vector.ts'
import { type CompiledStatement, quoteName, quoteText } from './sql-text.ts'
import type { Measure } from './vector.ts'

/** The number of characters to which strings are cut in a key (at most 512 bytes). */
export const keyCharsMax = 128
/** The most fields of one index: four of the longest keys fit into a B-tree entry (2,704 bytes). */
export const indexPathsMax = 4

/** Keys of numbers lie between these, as all doubles do. As jsonb these separate strings, numbers and booleans. */
const numberLeast = `'-1e400'`
const numberMost = `'1e400'`
const decimalsMax = 400

/** Constants of the key's order: null (SQL) last, strings, numbers, booleans, then objects and arrays alike. */
export const keyOrder = {
  stringLeast: `'""'::jsonb`,
  numberLeast: `${numberLeast}::jsonb`,
  booleanLeast: `'false'::jsonb`,
  booleanMost: `'true'::jsonb`,
} as const

/** Prints the field's value as jsonb; NULL if it is missing. Paths go into objects only, never into arrays. */
export function printValueExpression(path: FieldPath, record = 'data'): string {
  return [record, ...path.map(quoteText)].join(' -> ')
}

/** Prints the field's value as text; only meaningful for a string. */
export function printTextExpression(path: FieldPath, record = 'data'): string {
  const names = path.map(quoteText)
  const last = names.pop()
  assert(last !== undefined, 'a path has a name')
  return `${[record, ...names].join(' -> ')} ->> ${last}`
}

/**
 * Prints the ONE expression by which a field is indexed, compared and sorted: jsonb that is NULL for null and
 * missing, short for every stored value (an insert never fails on it), IMMUTABLE, and in the order of the value. It
 * is the value itself for booleans, for strings of up to `keyCharsMax` characters and for all doubles. A longer
 * string becomes its first characters. A number beyond a double's range or digits moves to a place that is on its
 * side of every double: it is cut to 400 decimals, with one more digit for the part that was cut. So a comparison
 * with a boolean, a double or a short string is exact by the key alone; one with a long string must compare the
 * value too.
 */
export function printKeyExpression(path: FieldPath, record = 'data'): string {
  const value = `(${printValueExpression(path, record)})`
  const text = `(${printTextExpression(path, record)})`
  const number = `${value}::numeric`
  const cut = `(trunc(${number}, ${decimalsMax}) + sign(${number}) * '1e-${decimalsMax + 1}'::numeric)`
  return `CASE jsonb_typeof${value}
 WHEN 'string' THEN CASE WHEN length(${text}) <= ${keyCharsMax} THEN ${value}
  ELSE jsonb_object(ARRAY['', left(${text}, ${keyCharsMax})]) -> '' END
 WHEN 'number' THEN least(greatest(
  CASE WHEN min_scale(${number}) <= ${decimalsMax} THEN ${value} ELSE ${cut}::text::jsonb END,
  ${numberLeast}::jsonb), ${numberMost}::jsonb)
 WHEN 'boolean' THEN ${value}
 WHEN 'object' THEN '{}'::jsonb
 WHEN 'array' THEN '{}'::jsonb
END`
}

/**
 * Prints the expression that orders values of equal keys (long strings may still differ); it is NULL for all
 * others.
 */
export function printTieExpression(path: FieldPath, record = 'data'): string {
  const value = `(${printValueExpression(path, record)})`
  return `CASE WHEN jsonb_typeof${value} IN ('string', 'number') THEN ${value} END`
}

/** Words as they are written, in lower case: no language, no stop words. */
export const wordsOnly = `'pg_catalog.simple'::regconfig`

/**
 * Prints the words of a string, for full-text indexes and `search`; NULL for any other value. It never fails: a
 * tsvector has at most 1 MB, which the words of so many characters do not reach.
 */
export function printWordsExpression(path: FieldPath, record = 'data'): string {
  const text = `left((${printTextExpression(path, record)}), ${limits.searchedCharsMax})`
  const isString = `jsonb_typeof((${printValueExpression(path, record)})) = 'string'`
  return `CASE WHEN ${isString} THEN to_tsvector(${wordsOnly}, ${text}) END`
}

/**
 * Returns true if a longer string could have the same key. The check counts code units, which are never fewer than
 * characters.
 */
export function isLong(value: Scalar): boolean {
  return typeof value === 'string' && value.length >= keyCharsMax
}

/** Returns the result of `printKeyExpression` for the value. */
export function toKey(value: Scalar): Scalar {
  return typeof value === 'string' && isLong(value)
    ? [...value].slice(0, keyCharsMax).join('')
    : value
}

/** Finds the least string above all that start with `text`, by code points; undefined if there is none. */
export function findSuccessor(text: string): string | undefined {
  const characters = [...text]
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    const code = last.codePointAt(0) ?? 0
    // Surrogates are no characters, so U+E000 comes after U+D7FF.
    if (code < 0x10ffff)
      return characters.join('') + String.fromCodePoint(code === 0xd7ff ? 0xe000 : code + 1)
  }
  return undefined
}

/** The things that an index finds records by: values, whole words, any part of a text, or how near a list is. */
export type Served = 'values' | 'words' | 'parts' | 'nearness'

type Method = {
  readonly serves: Served
  /** The access method of the database; its own name where it is not given. */
  readonly using?: string
  readonly fieldsMax: number
  readonly print: (path: FieldPath, index: NewIndex) => string
  /** Columns behind the keys. */
  readonly tail: readonly string[]
  /** The extension of the database that brings the method, and its operators for each key. */
  readonly extension?: {
    readonly name: string
    readonly operators: (index: NewIndex) => string
  }
}

/**
 * The database's methods. `btree` serves equality, lists, ranges, prefixes and sorting; it ends with the leaf, so
 * that the rows of one value come in the order of storing, and reading a page of them costs no more than a page.
 * `hash` serves equality and lists only, in less space; `gin` the words of texts; `trigram` the conditions that
 * text-parts.ts makes; `vector` the order that compile-nearest.ts asks for.
 */
const methods = {
  btree: {
    serves: 'values',
    fieldsMax: indexPathsMax,
    print: (path) => printKeyExpression(path),
    tail: ['leaf'],
  },
  hash: { serves: 'values', fieldsMax: 1, print: (path) => printKeyExpression(path), tail: [] },
  gin: {
    serves: 'words',
    fieldsMax: indexPathsMax,
    print: (path) => printWordsExpression(path),
    tail: [],
  },
  trigram: {
    serves: 'parts',
    using: 'gin',
    fieldsMax: indexPathsMax,
    print: (path) => printTextExpression(path),
    tail: [],
    extension: { name: 'pg_trgm', operators: () => 'gin_trgm_ops' },
  },
  vector: {
    serves: 'nearness',
    using: 'hnsw',
    fieldsMax: 1,
    print: (path, { vectors, extensionSchema: schema = '' }) =>
      printIndexedVector(`(${printValueExpression(path)})`, {
        schema,
        numbers: requireVectors(vectors).numbers,
      }),
    tail: [],
    extension: {
      name: vectorExtension,
      operators: ({ vectors }) => getOperatorClass(requireVectors(vectors).measure),
    },
  },
} as const satisfies Readonly<Record<string, Method>>

export type IndexMethod = keyof typeof methods

export function getServed(method: IndexMethod): Served {
  return methods[method].serves
}

/** Finds the extension that the server must have for indexes of the method. */
export function findMethodExtension(method: IndexMethod): string | undefined {
  const { extension }: Method = methods[method]
  return extension?.name
}

/** Lists of so many numbers, and the measure of their distance. */
export type IndexedVectors = { readonly numbers: number; readonly measure: Measure }

function requireVectors(vectors: IndexedVectors | undefined): IndexedVectors {
  assert(vectors !== undefined, 'an index of vectors says what they are')
  return vectors
}

export type NewIndex = {
  readonly schema: string
  readonly table: string
  readonly name: string
  /** One to `indexPathsMax`. */
  readonly paths: readonly FieldPath[]
  /** A B-tree takes the place of a method that has fewer fields. */
  readonly method: IndexMethod
  /** Only records that have a value in the first field. */
  readonly sparse?: boolean | undefined
  /** The SQL of the further condition that the records of a partial index satisfy; see partial-index.ts. */
  readonly predicate?: string | undefined
  /** The lists of an index of vectors; needed there. */
  readonly vectors?: IndexedVectors | undefined
  /** The schema of the method's extension; needed where it has one. */
  readonly extensionSchema?: string | undefined
  /** Builds the index while writes go on, and outside of a transaction. */
  readonly concurrently?: boolean | undefined
}

/** Compiles the DDL of an index over the live rows of a collection. */
export function compileIndex(index: NewIndex): CompiledStatement {
  const { paths, predicate } = index
  assert(paths.length >= 1 && paths.length <= indexPathsMax, 'an index has fields, and few')
  const name = paths.length <= methods[index.method].fieldsMax ? index.method : 'btree'
  const method: Method = methods[name]
  const { extension } = method
  assert(
    extension === undefined || index.extensionSchema !== undefined,
    'the schema of the extension is known',
  )
  const operators =
    extension === undefined
      ? ''
      : ` ${quoteName(index.extensionSchema ?? '', extension.operators(index))}`
  const keys = paths.map((path) => `(${method.print(path, index)})${operators}`)
  const first = paths.slice(0, 1).map((path) => `(${printKeyExpression(path)}) IS NOT NULL`)
  const rows = [
    'superseded_by IS NULL',
    ...(index.sparse === true ? first : []),
    ...(predicate === undefined ? [] : [predicate]),
  ]
  const text = `CREATE INDEX ${index.concurrently === true ? 'CONCURRENTLY ' : ''}${quoteName(index.name)} ON ${quoteName(index.schema, index.table)}
 USING ${method.using ?? name} (${[...keys, ...method.tail].join(', ')}) WHERE ${rows.join(' AND ')}`
  return { text, values: [] }
}
