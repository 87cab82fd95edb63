import type { ParameterRef } from '../condition.ts'
import { findSuccessor, isLong, keyOrder, printKeyExpression, toKey } from '../index-key.ts'
import {
  canBeCut,
  makeJsonValue,
  makeKeyValue,
  makePlainValue,
  makeReadValue,
} from '../parameter.ts'
import type { Parameters } from '../sql-text.ts'
import { makeConstant, readConstantText } from '../tree/make-expression.ts'
import type { Comparison, Expression, TypedConstant, ValueType } from '../tree/query.ts'
import { printCast } from './convert.ts'

/** One side of a comparison: its SQL, and the SQL of its key if it is a field that an index may serve. */
export type Side = {
  readonly expression: Expression
  readonly text: string
  readonly key: string | undefined
  readonly column: SideColumn | undefined
}

/**
 * The SQL of a column that has the field's value where that is of the column's type, and NULL elsewhere. A text is cut
 * there as in keys, so comparisons with a shorter one give the same.
 */
export type SideColumn = { readonly type: ValueType; readonly text: string }

/**
 * Prints a comparison, NULL if a side is NULL. JSON values of different types are unequal, and neither less nor
 * greater. Fields compare with constants and with each other by their keys.
 */
export function printComparison(
  operator: Comparison | 'is distinct from',
  sides: { readonly left: Side; readonly right: Side },
  values: Parameters,
): string {
  const { left, right } = sides
  const isJson = left.expression.type === 'json' || right.expression.type === 'json'
  if (operator === 'is distinct from')
    return isJson
      ? `(${printSideJson(left)} IS DISTINCT FROM ${printSideJson(right)})`
      : `(${printSide(left)} IS DISTINCT FROM ${printSide(right)})`
  if (operator === '<>') return `(NOT ${printComparison('=', sides, values)})`
  if (!isJson) return `(${left.text} ${operator} ${right.text})`
  const [given, before] = [findGiven(right.expression), findGiven(left.expression)]
  if (given !== undefined) return compareGiven(operator, left, { other: right, given, values })
  if (before !== undefined)
    return compareGiven(mirrored[operator], right, { other: left, given: before, values })
  return operator === '=' ? equal(left, right) : ordered(operator, left, right)
}

/** SQL that is true if the side is one of the constants; NULL if it is NULL. */
export function printOneOf(
  side: Side,
  constants: readonly TypedConstant[],
  values: Parameters,
): string {
  if (side.expression.type !== 'json') {
    const texts = constants.map((each) => each.value)
    return `(${side.text} = ANY (${values.add(texts, arrayTypes[side.expression.type])}))`
  }
  const scalars = constants.map((each) => toScalar(each) ?? each)
  const all = scalars.map(printConstantJson)
  if (side.key === undefined) return `(${side.text} = ANY (${values.add(all, 'jsonb[]')}))`
  const keys = `${side.key} = ANY (${values.add(scalars.map(printConstantKey), 'jsonb[]')})`
  if (scalars.some(needsValue))
    return `(${keys} AND ${side.text} = ANY (${values.add(all, 'jsonb[]')}))`
  const { column } = side
  if (column === undefined || scalars.some(({ type }) => type !== column.type)) return `(${keys})`
  const list = values.add(
    scalars.map(({ value }) => value),
    arrayTypes[column.type],
  )
  return besideColumn(column, `${column.text} = ANY (${list})`, keys)
}

/** SQL that is true if the side is one of the values that are given later. */
export function printInList(side: Side, parameter: ParameterRef, values: Parameters): string {
  if (side.expression.type !== 'json')
    return `(${side.text} = ANY (${values.add(makePlainValue(parameter.name), arrayTypes[side.expression.type])}))`
  const exact = () => `${side.text} = ANY (${values.add(makeJsonValue(parameter), 'jsonb[]')})`
  if (side.key === undefined) return `(${exact()})`
  const keys = `${side.key} = ANY (${values.add(makeKeyValue(parameter), 'jsonb[]')})`
  return `(${keys}${canBeCut(parameter) ? ` AND ${exact()}` : ''})`
}

/** Prints a test whether a field's text starts with `text`, as a range of keys; FALSE for values that are no text. */
export function printPrefixTest(side: Side, text: string, values: Parameters): string | undefined {
  if (side.key === undefined || text === '' || isLong(text)) return undefined
  const next = findSuccessor(text)
  const upper =
    next === undefined ? keyOrder.numberLeast : values.add(JSON.stringify(next), 'jsonb')
  return `(${side.key} >= ${values.add(JSON.stringify(text), 'jsonb')} AND ${side.key} < ${upper})`
}

const arrayTypes: Readonly<
  Record<
    ValueType,
    'numeric[]' | 'text[]' | 'boolean[]' | 'timestamp[]' | 'date[]' | 'interval[]' | 'jsonb[]'
  >
> = {
  json: 'jsonb[]',
  number: 'numeric[]',
  text: 'text[]',
  boolean: 'boolean[]',
  timestamp: 'timestamp[]',
  date: 'date[]',
  interval: 'interval[]',
  null: 'text[]',
}

const mirrored = { '=': '=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' } as const
type Ordered = Exclude<keyof typeof mirrored, '='>

/** Prints a side; what is nothing but NULL, such as coalesce(NULL), has no type that the other one could lack. */
function printSide(side: Side): string {
  return side.expression.type === 'null' ? 'NULL' : side.text
}

function printSideJson(side: Side): string {
  const { type } = side.expression
  return type === 'json' || type === 'null'
    ? printSide(side)
    : printCast(side.text, { from: type, to: 'json' })
}

/** A value given to the statement: a constant, or a parameter's. */
type GivenValue = {
  readonly type: ValueType
  /** The JSON text of the value; `key` is that of its key. */
  readonly json: unknown
  readonly key: unknown
  /** True if a longer value could have the same key. */
  readonly isCut: boolean
}
type GivenContext = { readonly given: GivenValue; readonly values: Parameters }

export function makeGiven(parameter: ParameterRef): GivenValue {
  const { type } = parameter
  return {
    type,
    json: makeJsonValue(parameter),
    key: makeKeyValue(parameter),
    isCut: canBeCut(parameter),
  }
}

function findGiven(expression: Expression): GivenValue | undefined {
  if (expression.kind === 'parameter') {
    const { parameter, type } = expression
    if (type === parameter.type) return makeGiven(parameter)
    // A text was made into a number or a truth value, which have the same spelling in JSON.
    const made = makeReadValue(parameter, type, (text) => readConstantText(text.trim(), type))
    return { type, json: made, key: made, isCut: false }
  }
  const constant = expression.kind === 'constant' ? toScalar(expression) : undefined
  if (constant === undefined) return undefined
  return {
    type: constant.type,
    json: printConstantJson(constant),
    key: printConstantKey(constant),
    isCut: needsValue(constant),
  }
}

/** Returns the text, number or truth value that a constant of JSON holds; undefined for lists and objects. */
function toScalar(constant: TypedConstant): TypedConstant | undefined {
  const { type, value } = constant
  if (type !== 'json' || typeof value !== 'string') return constant
  const held: unknown = JSON.parse(value)
  if (typeof held === 'string') return makeConstant('text', held)
  if (typeof held === 'boolean') return makeConstant('boolean', held)
  // The digits are those that were written.
  return typeof held === 'number' ? makeConstant('number', value) : undefined
}

/** Compares a field's column where that has a value: only rows without one look into their record. */
function compareGiven(
  operator: '=' | Ordered,
  side: Side,
  { other, given, values }: GivenContext & { readonly other: Side },
): string {
  const byValue = withGiven(operator, side, { given, values })
  const { column } = side
  if (column?.type !== given.type || other.expression.type !== given.type || given.isCut)
    return byValue
  return besideColumn(column, `${column.text} ${operator} ${other.text}`, byValue)
}

/** Never NULL for a value of another type, as the test of the record: NOT gives the same too. */
function besideColumn({ text }: SideColumn, test: string, byValue: string): string {
  return `((${text} IS NOT NULL AND ${test}) OR (${text} IS NULL AND ${byValue}))`
}

function withGiven(operator: '=' | Ordered, side: Side, { given, values }: GivenContext): string {
  const { key: ownKey } = side
  if (ownKey !== undefined)
    return printKeyTest(
      operator,
      {
        key: ownKey,
        get value() {
          return side.text
        },
      },
      { given, values },
    )
  const exact = values.add(given.json, 'jsonb')
  if (operator === '=') return `(${side.text} = ${exact})`
  return whenTyped(
    side.text,
    `jsonb_typeof(${side.text}) = '${jsonTypes[given.type]}' AND ${side.text} ${operator} ${exact}`,
  )
}

/** Prints a comparison of a field by its key; the value decides where the key alone does not. */
export function printKeyTest(
  operator: '=' | Ordered,
  field: { readonly key: string; readonly value: string },
  { given, values }: GivenContext,
): string {
  const key = values.add(given.key, 'jsonb')
  const more = given.isCut
    ? ` AND ${field.value} ${operator} ${values.add(given.json, 'jsonb')}`
    : ''
  if (operator === '=') return `(${field.key} = ${key}${more})`
  const end = typeEnd(operator, given.type)
  // The key of a longer text is cut: the bound itself counts as inside, and the value decides.
  const sign = given.isCut ? (operator.startsWith('<') ? '<=' : '>=') : operator
  return `(${field.key} ${sign} ${key} AND ${field.key} ${end}${more})`
}

/** Prints the test for the other end of the JSON type, past which other types sort. */
function typeEnd(operator: Ordered, type: ValueType): string {
  const isUpper = operator.startsWith('<')
  if (type === 'text') return isUpper ? `>= ${keyOrder.stringLeast}` : `< ${keyOrder.numberLeast}`
  if (type === 'number')
    return isUpper ? `>= ${keyOrder.numberLeast}` : `< ${keyOrder.booleanLeast}`
  return isUpper ? `>= ${keyOrder.booleanLeast}` : `<= ${keyOrder.booleanMost}`
}

function equal(left: Side, right: Side): string {
  const exact = `${printSideJson(left)} = ${printSideJson(right)}`
  if (left.key === undefined && right.key === undefined) return `(${exact})`
  return `(${printSideKey(left)} = ${printSideKey(right)} AND ${exact})`
}

/** The key that a field would have with the side's value. */
function printSideKey(side: Side): string {
  return side.key ?? printFieldKey(['e'], `jsonb_build_object('e', ${printSideJson(side)})`)
}

function ordered(operator: Ordered, left: Side, right: Side): string {
  const [a, b] = [printSideJson(left), printSideJson(right)]
  const same = `jsonb_typeof(${a}) = jsonb_typeof(${b}) AND jsonb_typeof(${a}) IN ('string', 'number', 'boolean')`
  return `CASE WHEN ${a} IS NOT NULL AND ${b} IS NOT NULL THEN ${same} AND ${a} ${operator} ${b} END`
}

function whenTyped(text: string, test: string): string {
  return `CASE WHEN ${text} IS NOT NULL THEN ${test} END`
}

const jsonTypes: Readonly<Record<ValueType, string>> = {
  json: '',
  number: 'number',
  text: 'string',
  boolean: 'boolean',
  timestamp: 'string',
  date: 'string',
  interval: 'string',
  null: 'null',
}

function printConstantJson({ type, value }: TypedConstant): string {
  return type === 'number' || type === 'json' ? String(value) : JSON.stringify(value)
}

/** Prints the key of a scalar, or of a list or an object, which all have the same. */
function printConstantKey(constant: TypedConstant): string {
  const { type, value } = constant
  if (type === 'json') return '{}'
  return type === 'text' ? JSON.stringify(toKey(String(value))) : printConstantJson(constant)
}

/** Returns true if values that differ may have the constant's key. */
function needsValue({ type, value }: TypedConstant): boolean {
  return type === 'json' || (type === 'text' && isLong(String(value)))
}

/** Prints the key of a field; also for ordering. */
export function printFieldKey(path: readonly [string, ...string[]], record: string): string {
  return `(${printKeyExpression(path, record)})`
}
