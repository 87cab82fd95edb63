import type { ParameterRef } from '../condition.ts'
import { isLong, keyExpression, keyOf, keyOrder, successor } from '../index-key.ts'
import { json, key, mayBeCut, plain, readAs } from '../parameter.ts'
import type { Parameters } from '../sql-text.ts'
import { constantText } from '../tree/make-expression.ts'
import type { Comparison, Expression, TypedConstant, ValueType } from '../tree/query.ts'
import { castText } from './convert.ts'

/** One side of a comparison: its SQL, and that of its key where it is a field that an index may serve. */
export type Side = {
  readonly expression: Expression
  readonly text: string
  readonly key: string | undefined
}

/**
 * A comparison in SQL, NULL where a side is NULL. JSON values of different types are unequal, and neither less
 * nor greater. Fields compare with constants and with each other by their keys.
 */
export function compareText(
  operator: Comparison | 'is distinct from',
  sides: { readonly left: Side; readonly right: Side },
  values: Parameters,
): string {
  const { left, right } = sides
  const isJson = left.expression.type === 'json' || right.expression.type === 'json'
  if (operator === 'is distinct from')
    return isJson
      ? `(${jsonOf(left)} IS DISTINCT FROM ${jsonOf(right)})`
      : `(${left.text} IS DISTINCT FROM ${right.text})`
  if (operator === '<>') return `(NOT ${compareText('=', sides, values)})`
  if (!isJson) return `(${left.text} ${operator} ${right.text})`
  const [given, before] = [givenOf(right.expression), givenOf(left.expression)]
  if (given !== undefined) return withGiven(operator, left, { given, values })
  if (before !== undefined) return withGiven(mirrored[operator], right, { given: before, values })
  return operator === '=' ? equal(left, right) : ordered(operator, left, right)
}

/** Whether the side is one of the constants; NULL where it is NULL. */
export function oneOfText(
  side: Side,
  constants: readonly TypedConstant[],
  values: Parameters,
): string {
  if (side.expression.type !== 'json') {
    const texts = constants.map((each) => each.value)
    return `(${side.text} = ANY (${values.add(texts, arrayTypes[side.expression.type])}))`
  }
  const all = constants.map(jsonOfConstant)
  if (side.key === undefined) return `(${side.text} = ANY (${values.add(all, 'jsonb[]')}))`
  const keys = `${side.key} = ANY (${values.add(constants.map(keyText), 'jsonb[]')})`
  const exact = ` AND ${side.text} = ANY (${values.add(all, 'jsonb[]')})`
  return `(${keys}${constants.some(isLongText) ? exact : ''})`
}

/** Whether the side is one of the values that are given later. */
export function inListText(side: Side, parameter: ParameterRef, values: Parameters): string {
  if (side.expression.type !== 'json')
    return `(${side.text} = ANY (${values.add(plain(parameter.name), arrayTypes[side.expression.type])}))`
  const exact = () => `${side.text} = ANY (${values.add(json(parameter), 'jsonb[]')})`
  if (side.key === undefined) return `(${exact()})`
  const keys = `${side.key} = ANY (${values.add(key(parameter), 'jsonb[]')})`
  return `(${keys}${mayBeCut(parameter) ? ` AND ${exact()}` : ''})`
}

/** Fields whose text starts so, by a range of keys; FALSE for values that are no text. */
export function startsText(side: Side, text: string, values: Parameters): string | undefined {
  if (side.key === undefined || text === '' || isLong(text)) return undefined
  const next = successor(text)
  const upper =
    next === undefined ? keyOrder.numberLeast : values.add(JSON.stringify(next), 'jsonb')
  return `(${side.key} >= ${values.add(JSON.stringify(text), 'jsonb')} AND ${side.key} < ${upper})`
}

const arrayTypes: Readonly<
  Record<ValueType, 'numeric[]' | 'text[]' | 'timestamp[]' | 'date[]' | 'interval[]' | 'jsonb[]'>
> = {
  json: 'jsonb[]',
  number: 'numeric[]',
  text: 'text[]',
  boolean: 'text[]',
  timestamp: 'timestamp[]',
  date: 'date[]',
  interval: 'interval[]',
  null: 'text[]',
}

const mirrored = { '=': '=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' } as const
type Ordered = Exclude<keyof typeof mirrored, '='>

function jsonOf(side: Side): string {
  const { type } = side.expression
  return type === 'json' || type === 'null'
    ? side.text
    : castText(side.text, { from: type, to: 'json' })
}

/** A value that the statement is given: a constant, or a parameter's. */
type Given = {
  readonly type: ValueType
  /** JSON text of the value, and of its key. */
  readonly json: unknown
  readonly key: unknown
  /** Whether a longer value could have the same key. */
  readonly isCut: boolean
}
type With = { readonly given: Given; readonly values: Parameters }

export function givenBy(parameter: ParameterRef): Given {
  const { type } = parameter
  return { type, json: json(parameter), key: key(parameter), isCut: mayBeCut(parameter) }
}

function givenOf(expression: Expression): Given | undefined {
  if (expression.kind === 'parameter') {
    const { parameter, type } = expression
    if (type === parameter.type) return givenBy(parameter)
    // A text that was made into a number or a truth value; both say in JSON what they say as text.
    const made = readAs(parameter, type, (text) => constantText(text.trim(), type))
    return { type, json: made, key: made, isCut: false }
  }
  if (expression.kind !== 'constant') return undefined
  return {
    type: expression.type,
    json: jsonOfConstant(expression),
    key: keyText(expression),
    isCut: isLongText(expression),
  }
}

function withGiven(operator: '=' | Ordered, side: Side, { given, values }: With): string {
  const { key: ownKey } = side
  if (ownKey !== undefined)
    return keyTest(
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

/** A comparison of a field by its key; the value decides where the key alone does not. */
export function keyTest(
  operator: '=' | Ordered,
  field: { readonly key: string; readonly value: string },
  { given, values }: With,
): string {
  const key = values.add(given.key, 'jsonb')
  const more = given.isCut
    ? ` AND ${field.value} ${operator} ${values.add(given.json, 'jsonb')}`
    : ''
  if (operator === '=') return `(${field.key} = ${key}${more})`
  const end = typeEnd(operator, given.type)
  // The key of a longer text is cut: its own end counts as inside, and the value decides.
  const sign = given.isCut ? (operator.startsWith('<') ? '<=' : '>=') : operator
  return `(${field.key} ${sign} ${key} AND ${field.key} ${end}${more})`
}

/** The other end of the JSON type, past which other types sort. */
function typeEnd(operator: Ordered, type: ValueType): string {
  const isUpper = operator.startsWith('<')
  if (type === 'text') return isUpper ? `>= ${keyOrder.stringLeast}` : `< ${keyOrder.numberLeast}`
  if (type === 'number')
    return isUpper ? `>= ${keyOrder.numberLeast}` : `< ${keyOrder.booleanLeast}`
  return isUpper ? `>= ${keyOrder.booleanLeast}` : `<= ${keyOrder.booleanMost}`
}

function equal(left: Side, right: Side): string {
  const exact = `${jsonOf(left)} = ${jsonOf(right)}`
  if (left.key === undefined && right.key === undefined) return `(${exact})`
  return `(${keyOfSide(left)} = ${keyOfSide(right)} AND ${exact})`
}

/** What the key of a field of the side's value would be. */
function keyOfSide(side: Side): string {
  return side.key ?? keyOfField(['e'], `jsonb_build_object('e', ${jsonOf(side)})`)
}

function ordered(operator: Ordered, left: Side, right: Side): string {
  const [a, b] = [jsonOf(left), jsonOf(right)]
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

function jsonOfConstant({ type, value }: TypedConstant): string {
  return type === 'number' ? String(value) : JSON.stringify(value)
}

function keyText(constant: TypedConstant): string {
  const { type, value } = constant
  return type === 'text' ? JSON.stringify(keyOf(String(value))) : jsonOfConstant(constant)
}

function isLongText({ type, value }: TypedConstant): boolean {
  return type === 'text' && isLong(String(value))
}

/** The key of a field; for ordering too. */
export function keyOfField(path: readonly [string, ...string[]], record: string): string {
  return `(${keyExpression(path, record)})`
}
