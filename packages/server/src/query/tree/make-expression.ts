import type { ParameterRef } from '../condition.ts'
import { countSteps } from '../steps.ts'
import { isDocument } from './json-document.ts'
import {
  type Comparison,
  type Expression,
  type Held,
  nothing,
  type Query,
  type Typed,
  type TypedConstant,
  type ValueType,
} from './query.ts'
import { readIntervalText, readTimeText } from './read-time-text.ts'

/** The reason why values do not fit together, in words that follow "has". */
export class TypeProblem extends Error {}

const words: Readonly<Record<ValueType, string>> = {
  json: 'a JSON value',
  number: 'a number',
  text: 'a text',
  boolean: 'a truth value',
  timestamp: 'a time',
  date: 'a date',
  interval: 'an interval',
  null: 'NULL',
}

const numberForm = /^[+-]?(?=\.?\d)(?:\d{0,310})(?:\.(\d{0,400}))?(?:[eE]([+-]?\d{1,3}))?$/
/** The number of decimals up to which keys of fields are exact (index-key.ts). */
const decimalsMax = 400
export function makeConstant(type: ValueType, value: string | boolean | null): TypedConstant {
  return Object.freeze({ kind: 'constant', type, value })
}

/** Makes a number of digits alone, which PostgreSQL holds as an integer as far as 8 bytes hold it. */
export function makeDigits(digits: string): TypedConstant {
  return Object.freeze({
    kind: 'constant',
    type: 'number',
    value: digits,
    isWhole: /^-?\d{1,18}$/.test(digits),
  })
}

/** Says whether a number is one that PostgreSQL would hold as an integer. */
export function markWhole(expression: Expression, isWhole: boolean): Expression {
  const isMarked = (expression.isWhole ?? false) === isWhole
  return isMarked ? expression : Object.freeze({ ...expression, isWhole })
}

/** Says what a timestamp means. */
export function markZone(expression: Expression, zone: Expression['zone']): Expression {
  return expression.zone === zone ? expression : Object.freeze({ ...expression, zone })
}

/** Says how PostgreSQL holds a JSON value. */
export function markHeld(expression: Expression, held: Held | undefined): Expression {
  return expression.held === held ? expression : Object.freeze({ ...expression, held })
}

/** Returns how PostgreSQL holds all of the values that are not NULL; undefined if it is not the same for all. */
export function findCommonHeld(expressions: readonly Expression[]): Held | undefined {
  const [first, ...others] = expressions.filter((each) => !isNullConstant(each))
  const text = JSON.stringify(first?.held)
  return others.every(({ held }) => JSON.stringify(held) === text) ? first?.held : undefined
}

/** Returns the type of the elements of an array; undefined for anything else. */
export function findItems({ held }: Typed): Typed | undefined {
  return typeof held === 'object' ? held.items : undefined
}

/** Returns true if some of the values are integers in PostgreSQL, and all others NULL. */
export function areWhole(expressions: readonly Expression[]): boolean {
  const known = expressions.filter((each) => !isNullConstant(each))
  return known.length > 0 && known.every(({ isWhole }) => isWhole === true)
}

export function negate(argument: Expression): Expression {
  return Object.freeze({ kind: 'not', type: 'boolean', argument })
}

/** Makes the value of a parameter; the type of a text is decided later, as with a literal. */
export function makeParameter(declared: ParameterRef): Expression {
  return Object.freeze({ kind: 'parameter', type: declared.type, parameter: declared })
}

/** Reads a decimal number and writes it as JSON does; undefined if the text is none. */
export function readNumberText(text: string): string | undefined {
  const [found, decimals = '', power = '0'] = numberForm.exec(text) ?? []
  const isExact = decimals.length - Number(power) <= decimalsMax && Number.isFinite(Number(text))
  if (found === undefined || !isExact) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = ''] =
    /^([+-]?)(\d*)\.?(\d*)(.*)$/.exec(text) ?? []
  const digits = whole.replace(/^0+(?=\d)/, '')
  return `${sign === '-' ? '-' : ''}${digits === '' ? '0' : digits}${fraction === '' ? '' : `.${fraction}`}${exponent}`
}

/** Returns true of a NULL that is written out, whatever its type is. */
export function isNullConstant(expression: Expression): boolean {
  return expression.kind === 'constant' && expression.value === null
}

/** Coerces the expression to the type; fields and other JSON values of another type become NULL. */
export function coerceTo(expression: Expression, type: ValueType): Expression {
  if (expression.type === type) return expression
  if (expression.type === 'null') return makeConstant(type, null)
  if (isTextLiteral(expression)) return readConstant(expression.value, type)
  if (isTextParameter(expression) && type !== 'json') return Object.freeze({ ...expression, type })
  if (expression.type === 'json' && type !== 'interval')
    return Object.freeze({ kind: 'convert', type, argument: expression })
  const widens = type === 'json' || (type === 'timestamp' && expression.type === 'date')
  if (widens) return Object.freeze({ kind: 'cast', type, argument: expression })
  throw new TypeProblem(`${words[expression.type]} where ${words[type]} is needed`)
}

/** Takes away the blanks of a char(n), which PostgreSQL counts nowhere but in an answer. */
export function removePadding(expression: Expression): Expression {
  if (expression.kind !== 'call' || !isPadded(expression)) return expression
  return Object.freeze({ ...expression, name: 'rtrim', arguments: Object.freeze([expression]) })
}

/** Casts the expression to the type as far as possible, like CAST. */
export function castTo(given: Expression, type: ValueType): Expression {
  const expression = removePadding(given)
  if (expression.type === type) return expression
  if (expression.type === 'null') return makeConstant(type, null)
  if (isTextLiteral(expression) && type !== 'json') return readConstant(expression.value, type)
  if (isTextParameter(expression) && type !== 'json') return Object.freeze({ ...expression, type })
  if (!castable(expression.type, type))
    throw new TypeProblem(`${words[expression.type]} that is to become ${words[type]}`)
  return Object.freeze({ kind: 'cast', type, argument: expression })
}

function castable(from: ValueType, to: ValueType): boolean {
  if (to === 'interval') return false
  if (from === 'json' || from === 'text' || to === 'text' || to === 'json') return true
  if (from === 'boolean' || to === 'boolean') return from === 'number' || to === 'number'
  return (from === 'timestamp' && to === 'date') || (from === 'date' && to === 'timestamp')
}

/** Converts all expressions to one type: JSON if their types differ. */
export function unifyTypes(given: readonly Expression[]): readonly Expression[] {
  const expressions = readBesideHeld(given)
  // PostgreSQL takes the type of the first text, so a char(n) behind another text loses its blanks.
  const [first] = expressions
  const isPlain = first !== undefined && first.type !== 'null' && !isPadded(first)
  const same = readBeside(isPlain ? expressions.map(removePadding) : expressions)
  return as(findCommonType(same.map(getType)), same)
}

/** Reads texts that are written beside values that PostgreSQL holds as jsonb as JSON. */
function readBesideHeld(expressions: readonly Expression[]): readonly Expression[] {
  if (!expressions.some(isTextLiteral)) return expressions
  const others = expressions.filter((each) => !isTextLiteral(each))
  if (others.some((each) => findItems(each) !== undefined) && others.length < expressions.length)
    throw new TypeProblem('a literal beside an array; write ARRAY[…] with a type, ARRAY[]::int[]')
  if (findCommonHeld(others) !== 'document') return expressions
  return expressions.map((each) => (isTextLiteral(each) ? makeDocument(each.value) : each))
}

/** Makes the JSON value that a literal states, as PostgreSQL reads it where it needs a jsonb. */
export function makeDocument(text: string): Expression {
  if (!isDocument(text)) throw new TypeProblem(`'${text.slice(0, 40)}', which is no JSON`)
  return markHeld(makeConstant('json', text), 'document')
}

/** Reads texts that are written beside numbers, or beside truth values, as such, as PostgreSQL does, if all can be. */
export function readBeside(expressions: readonly Expression[]): readonly Expression[] {
  const types = new Set(expressions.filter((each) => !isTextLiteral(each)).map(({ type }) => type))
  types.delete('null')
  const [type] = types
  if (types.size !== 1 || (type !== 'number' && type !== 'boolean')) return expressions
  const read = expressions.map((each) => (isTextLiteral(each) ? readAs(each, type) : each))
  return read.every((each) => each !== undefined) ? read : expressions
}

function readAs(literal: TypedConstant, type: ValueType): TypedConstant | undefined {
  const value = readConstantText(String(literal.value).trim(), type)
  if (value === undefined) return undefined
  if (type === 'number') return makeDigits(value)
  return makeConstant(type, type === 'boolean' ? value === 'true' : value)
}

function isPadded(expression: Expression): boolean {
  return expression.kind === 'call' && expression.name === 'char'
}

function getType(expression: Expression): ValueType {
  return expression.type
}

function as(type: ValueType, expressions: readonly Expression[]): readonly Expression[] {
  return expressions.map((each) => {
    return isText(each) && type === 'json' ? castTo(each, 'json') : coerceTo(each, type)
  })
}

/** Returns the type of a set operation's side; a NULL without a type takes that of the other side. */
export function findSideType(query: Query, at: number): ValueType {
  if (query.kind === 'set') return query.columns[at]?.type ?? 'null'
  const own = query.columns[at]?.expression
  const isOpen = own === undefined || (own.type === 'text' && isNullConstant(own))
  return isOpen ? 'null' : own.type
}

export function findCommonType(types: readonly ValueType[]): ValueType {
  const known = new Set(types.filter((type) => type !== 'null'))
  const [only] = known
  if (only === undefined) return 'null'
  if (known.size === 1) return only
  const times = (['timestamp', 'date', 'interval'] as const).filter((type) => known.has(type))
  const [first] = times
  if (first === undefined) return 'json'
  const other = [...known].find((type) => type !== first && !isBeside(type, first))
  if (other !== undefined) throw new TypeProblem(`${words[first]} beside ${words[other]}`)
  // A JSON value may state a time of day, which a date would lose.
  return first === 'date' && known.has('json') ? 'timestamp' : first
}

/** Returns true if values of the type may become times of another type. */
function isBeside(type: ValueType, time: ValueType): boolean {
  return type === 'json' || type === 'text' || (type === 'date' && time === 'timestamp')
}

/** Makes a comparison; JSON values compare as in a request's `find`, without any conversion. */
export function makeComparison(
  operator: Comparison | 'is distinct from',
  sides: { readonly left: Expression; readonly right: Expression },
): Expression {
  countSteps(6)
  const [first = nothing, second = nothing] = readBesideHeld([sides.left, sides.right])
  const isOrder = operator !== '=' && operator !== '<>' && operator !== 'is distinct from'
  if (isOrder && [first, second].some((each) => findItems(each) !== undefined))
    throw new TypeProblem(`${operator} of arrays, which have no order here; compare an element`)
  const [left, right] = comparable(removePadding(first), removePadding(second))
  const isUnknown = [left, right].some((each) => each.type === 'null' || isNullConstant(each))
  if (isUnknown && operator !== 'is distinct from') return makeConstant('boolean', null)
  return Object.freeze({ kind: 'compare', type: 'boolean', operator, left, right })
}

/**
 * Returns two sides that have an order between them; a field of a declared type compares by its JSON value, as
 * indexes do.
 */
function comparable(left: Expression, right: Expression): readonly [Expression, Expression] {
  const types = new Set([left.type, right.type])
  const scalar = [...types].every((type) => ['json', 'number', 'text', 'boolean'].includes(type))
  if (types.has('json') && scalar) return [left, right]
  if (left.type === right.type) return [unwrapped(left, right), unwrapped(right, left)]
  if (left.type === 'null' || right.type === 'null') return [left, right]
  if (isText(left)) return comparable(coerceTo(left, right.type), right)
  if (isText(right)) return comparable(left, coerceTo(right, left.type))
  const isTimes = types.has('timestamp') && types.has('date')
  if (types.has('json') || isTimes) {
    const type = findCommonType([left.type, right.type])
    return [coerceTo(left, type), coerceTo(right, type)]
  }
  throw new TypeProblem(`a comparison of ${words[left.type]} with ${words[right.type]}`)
}

function isText(expression: Expression): boolean {
  return isTextLiteral(expression) || isTextParameter(expression)
}

export function isTextLiteral(
  expression: Expression,
): expression is TypedConstant & { readonly value: string } {
  return (
    expression.kind === 'constant' &&
    expression.type === 'text' &&
    typeof expression.value === 'string'
  )
}

function isTextParameter(expression: Expression): boolean {
  return expression.kind === 'parameter' && expression.type === 'text'
}

function unwrapped(expression: Expression, other: Expression): Expression {
  const isField = expression.kind === 'convert' && expression.argument.kind === 'field'
  const isScalar = ['number', 'text', 'boolean'].includes(expression.type)
  const isPlain = ['constant', 'parameter', 'convert'].includes(other.kind)
  return isField && isScalar && isPlain ? expression.argument : expression
}

function readConstant(text: string, type: ValueType): TypedConstant {
  const made = readAs(makeConstant('text', text), type)
  if (made === undefined)
    throw new TypeProblem(`'${text.slice(0, 40)}', which is not ${words[type]}`)
  return made
}

/** Reads a text as a value of the type and returns the value's text; undefined if it states none. */
export function readConstantText(text: string, type: ValueType): string | undefined {
  switch (type) {
    case 'number':
      return readNumberText(text)
    case 'boolean': {
      const word = text.toLowerCase()
      if (['t', 'true', 'yes', 'on', '1'].includes(word)) return 'true'
      return ['f', 'false', 'no', 'off', '0'].includes(word) ? 'false' : undefined
    }
    case 'timestamp':
      return readTimeText(text)
    case 'date':
      return readTimeText(text)?.slice(0, 10)
    case 'interval':
      return readIntervalText(text)
    default:
      return text
  }
}
