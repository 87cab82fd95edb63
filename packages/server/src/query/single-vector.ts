import { quoteName } from './sql-text.ts'
import type { Measure } from './vector.ts'

// pgvector keeps numbers in single precision and computes with them: 3 to 20 times as fast as double precision in
// SQL, but some distances come in another order. So what it finds is either bounded here, by how far its distance can be
// from the exact one, or is only what is compared exactly afterwards.

export const vectorExtension = 'vector'

/** The operators of pgvector that order by the measure, and its operator class for HNSW indexes. */
const operators: Readonly<Record<Measure, { readonly distance: string; readonly class: string }>> =
  {
    cosine: { distance: '<=>', class: 'vector_cosine_ops' },
    l2: { distance: '<->', class: 'vector_l2_ops' },
    inner_product: { distance: '<#>', class: 'vector_ip_ops' },
  }

export function getOperatorClass(measure: Measure): string {
  return operators[measure].class
}

/** The most numbers of a list that an HNSW index takes. */
export const indexedNumbersMax = 2_000

/**
 * Finds in the text of a JSON list what keeps it from being such a vector: anything but numbers, a number of 16 digits
 * or more before the point, whose products could overflow, or of 36 digits in a row. jsonb is written without exponents.
 */
const strange = `'[^][0-9., -]|.\\[|[[ -][0-9]{16}|[0-9]{36}'`

/** Lengths between which no product of single precision overflows, and no sum of squares vanishes. */
const lengthMax = 1e15
const lengthMin = 1e-12

/** Returns whether distances from the list can be bounded in single precision. */
export function isWithinSingle(list: readonly number[]): boolean {
  const length = Math.hypot(...list)
  return length > lengthMin && length < lengthMax
}

export type VectorShape = {
  readonly schema: string
  readonly numbers: number
}

/** Prints the text of a JSON list (SQL of jsonb) of so many elements; NULL for anything else. */
export function printListText(list: string, numbers: number): string {
  return `CASE WHEN jsonb_typeof(${list}) = 'array' THEN CASE WHEN jsonb_array_length(${list}) = ${numbers} THEN (${list})::text END END`
}

/** Prints the vector of a list's text; NULL if single precision does not hold it. It never fails. */
export function printTextVector(text: string, type: string): string {
  return `CASE WHEN ${text} !~ ${strange} THEN ${text}::${type} END`
}

/** Prints the one expression by which an index has the vectors of JSON lists: IMMUTABLE, NULL for all but such lists. */
export function printIndexedVector(list: string, { schema, numbers }: VectorShape): string {
  const text = `(${printListText(list, numbers)})`
  const type = quoteName(schema, 'vector')
  // An index must know the number from the type, and the type of CASE has none.
  return `(${printTextVector(text, type)})::${type}(${numbers})`
}

/** Prints pgvector's distance of two vectors; of inner products the negative one. */
export function printSingleDistance(
  measure: Measure,
  schema: string,
): (a: string, b: string) => string {
  const operator = `OPERATOR(${quoteName(schema)}.${operators[measure].distance})`
  return (a, b) => `(${a} ${operator} ${b})`
}

/** Half of the distance between 1 and the next number of single precision, and a little for what is of higher order. */
const unit = 2 ** -24 * 1.02

/**
 * Prints how far a distance of pgvector (SQL `single`) of a vector of the length `norm` can be from the exact one. Each
 * number is rounded once when it is read, and a sum of n products in any order by n roundings at most (Higham, Accuracy
 * and Stability of Numerical Algorithms, 3.1). NULL for a vector too short for its cosine.
 */
export function printErrorBound(
  measure: Measure,
  to: readonly number[],
  { single, norm }: { readonly single: string; readonly norm: string },
): string {
  const count = to.length
  const length = Math.hypot(...to)
  const float = (value: number) => `'${value}'::float8`
  switch (measure) {
    case 'cosine':
      return `CASE WHEN ${norm} > ${float(lengthMin)} THEN ${float((2 * count + 16) * unit)} END`
    case 'inner_product':
      return `${norm} * ${float((count + 8) * unit * length)} + 1e-30`
    case 'l2':
      return `${single} * ${float(((count + 8) / 2) * unit)} + (${norm} + ${float(length)}) * ${float(unit)} + 1e-16`
  }
}
