import type { Bytes, Measure } from '../bytes.ts'
import type { Expression, Held, ValueType } from '../query.ts'

/**
 * `printable`: anything, as text. `same`: all arguments of it become one type. `time`: a timestamp or an interval.
 * `amount`: a number or an interval. `document`: a JSON value; a literal is read as JSON, and a text is refused.
 * `read json`: the same, but a text is one of JSON. All others are literals, which query/sql/read-literal.ts reads.
 */
export type ParameterKind =
  | Exclude<ValueType, 'null'>
  | 'printable'
  | 'same'
  | 'time'
  | 'amount'
  | 'document'
  | 'read json'
  | 'unit'
  | LiteralKind

/** Arguments that must be written out, because something of the statement is made from them before it runs. */
export type LiteralKind =
  | 'block'
  | 'time format'
  | 'date format'
  | 'moment format'
  | 'number format'
  | 'zone'
  | 'pattern'
  | 'flags'
  | 'case flag'
  | 'path'
  | 'template'

/** One row for each function: its types, its bounds, and its SQL. Compiler, refusals and documentation go by it. */
export type FunctionDefinition = {
  readonly parameters: readonly ParameterKind[]
  /** The number of parameters that may be left out. */
  readonly optional?: number
  /** True if the last parameter may be repeated. */
  readonly variadic?: boolean
  /** The names that arguments may be given by (`days => 3`), of functions where that is usual. */
  readonly names?: readonly string[]
  /** The type of the result; `same`: the common type of the arguments. */
  readonly result: Exclude<ValueType, 'null'> | 'same'
  /** True if the last digits are those of the machine's library, so that a view made anew elsewhere could differ. */
  readonly isInexact?: true
  /** True if PostgreSQL gives an integer; `same`: if all numbers that go into it are integers. */
  readonly whole?: true | 'same'
  /** The meaning of a time that it gives: a moment, a local time, or whatever the times are that go into it. */
  readonly zone?: 'moment' | 'local' | 'same' | 'other'
  /**
   * The way in which PostgreSQL holds a JSON value that it gives. `same`: as all of its arguments; `array`: as the
   * first of its arguments that is an array; `items`: as an array of its first argument's values.
   */
  readonly held?: Held | 'same' | 'array' | 'items'
  /** Returns the problem with arguments of the right types, in words that follow "has". */
  readonly check?: (args: readonly Expression[]) => string | undefined
  /**
   * Returns the most bytes of the result, by those of the arguments (`parts`); not given: those of the largest. A
   * query that could ask for more than can be held is refused. A function that gives a text is asked twice: for its
   * bytes as a text, and as a part of a JSON string. Where it gives a JSON value all bytes are those of JSON.
   */
  readonly bytes?: (parts: readonly Bytes[], args: readonly Expression[], measure: Measure) => Bytes
  /** True if the call is printed as a sub-query around its arguments. */
  readonly isSubQuery?: true
  /** Prints the call; no row may make it fail. */
  readonly print: (args: readonly string[], expressions: readonly Expression[]) => string
}

type Print = FunctionDefinition['print']

/** The most arguments that PostgreSQL's functions take. */
export const argumentsMax = 100
/** The most characters or rows that a count can ask for; no text and no answer has as many. */
const countMax = 100_000_000

export function printPlain(name: string): Print {
  return (args) => `${name}(${args.join(', ')})`
}

export function printInfix(sign: string): Print {
  return ([left = '', right = '']) => `(${left} ${sign} ${right})`
}

/**
 * Prints a number as a whole one that PostgreSQL's functions take; NULL stays NULL. Buckets of width 1 are the one
 * expression that cuts at both ends and names the number once.
 */
export function printCount(text = '0'): string {
  return `(width_bucket(trunc(${text}), ${-countMax}, ${countMax}, ${2 * countMax}) - ${countMax + 1})`
}

/** Prints a count of at least 1, NULL for less: PostgreSQL's own functions would fail. */
export function printPositiveCount(text = '0'): string {
  return `nullif(greatest(${printCount(text)}, 0), 0)`
}

export function printNonZero(text = ''): string {
  return `nullif(${text}, 0)`
}

/** Returns the least length of a text in bytes: known only for a constant. */
export function countLeastBytes(expression: Expression | undefined, { print }: Measure): number {
  return Buffer.byteLength(print(getText(expression)))
}

/** Returns the text of a constant; '' for anything else. */
export function getText(expression: Expression | undefined): string {
  return expression?.kind === 'constant' ? String(expression.value ?? '') : ''
}

/**
 * Returns the number of characters, or of repetitions, that a constant, or the least of several values, asks for;
 * infinite if that is not known, or is counted from the other end. The least of texts may be a larger number than each
 * of them states ('49' is less than '5'), so only of numbers, and of JSON values that become nothing else, it counts.
 */
export function countChars(expression: Expression | undefined): number {
  if (expression?.kind === 'call' && expression.name === 'least' && expression.type !== 'text')
    return Math.min(...expression.arguments.map(countChars))
  if (expression?.kind === 'convert') return countChars(expression.argument)
  // A cast to int rounds, upwards where it may.
  if (
    expression?.kind === 'call' &&
    expression.name === 'round' &&
    expression.arguments.length === 1
  )
    return countChars(expression.arguments[0]) + 1
  const given = expression?.kind === 'cast' ? expression.argument : expression
  const count = given?.kind === 'constant' ? Number(given.value ?? Number.NaN) : Number.NaN
  return count >= 0 ? Math.floor(count) : Number.POSITIVE_INFINITY
}
