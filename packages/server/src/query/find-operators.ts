import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { parseBlock } from './address.ts'
import {
  type Bound,
  type Condition,
  combineAny,
  type FieldPath,
  negate,
  never,
  type Scalar,
  testField,
} from './condition.ts'
import { countryCode, countrySet, dataSetName } from './data-set.ts'
import { extendPointer } from './field-path.ts'
import { parseBoolean, parseScalar, parseText } from './operand.ts'
import { translatePattern } from './pattern.ts'
import { parseSearch } from './search.ts'

type Operator = (path: FieldPath, operand: unknown, pointer: string) => Condition

/** Every operator by its wire name, in both vocabularies of the public clients. */
export const operators: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['is', parseIs],
  ['eq', parseIs],
  ['isNot', negated(parseIs)],
  ['ne', negated(parseIs)],
  ['in', parseOneOf],
  ['notIn', negated(parseOneOf)],
  ['isNull', flag((path) => testField(path, { kind: 'null' }))],
  ['isNotNull', flag((path) => negate(testField(path, { kind: 'null' })))],
  ['exists', flag((path) => testField(path, { kind: 'exists' }))],
  ['greaterThan', comparison('from', false)],
  ['gt', comparison('from', false)],
  ['greaterThanOrEqual', comparison('from', true)],
  ['gte', comparison('from', true)],
  ['lessThan', comparison('to', false)],
  ['lt', comparison('to', false)],
  ['lessThanOrEqual', comparison('to', true)],
  ['lte', comparison('to', true)],
  ['betweenOp', between],
  ['between', between],
  ['startsWith', affix('starts', false)],
  ['startsWithCaseInsensitive', affix('starts', true)],
  ['endsWith', affix('ends', false)],
  ['endsWithCaseInsensitive', affix('ends', true)],
  ['includes', includes],
  ['contains', includes],
  ['includesCaseInsensitive', includesIgnoringCase],
  ['search', (path, operand, pointer) => testField(path, parseSearch(operand, pointer))],
  ['regExpMatches', matches],
  ['CIDR', inBlock],
  ['cidr', inBlock],
  ['isLocalIp', flag((path) => testField(path, { kind: 'address', local: true }))],
  ['isExternalIp', flag((path) => testField(path, { kind: 'address', local: false }))],
  ['b64', base64],
  ['inCountry', inCountry],
  ['inDataset', inDataSet],
])

/** Parses the condition that the field equals the operand; a bare value means the same. */
export function parseIs(path: FieldPath, operand: unknown, pointer: string): Condition {
  if (operand === null) return testField(path, { kind: 'null' })
  return testField(path, {
    kind: 'one-of',
    values: Object.freeze([equalityOperand(operand, pointer)]),
  })
}

function parseOneOf(path: FieldPath, operand: unknown, pointer: string): Condition {
  if (!Array.isArray(operand)) throw makeInvalidFault(pointer, 'must be a list')
  const items: readonly unknown[] = operand
  if (items.length > limits.inListMax)
    throw makeInvalidFault(pointer, `has more than ${limits.inListMax} values`)
  const values = items.flatMap((item, index) => {
    return item === null ? [] : [equalityOperand(item, extendPointer(pointer, index))]
  })
  return combineAny([
    values.length === 0
      ? never
      : testField(path, { kind: 'one-of', values: Object.freeze(values) }),
    items.includes(null) ? testField(path, { kind: 'null' }) : never,
  ])
}

function equalityOperand(operand: unknown, pointer: string): Scalar {
  if (typeof operand === 'object') {
    throw makeInvalidFault(
      pointer,
      'must be a string, a number, true, false or null; nested fields are compared one by one',
    )
  }
  return parseScalar(operand, pointer)
}

function comparison(side: 'from' | 'to', inclusive: boolean): Operator {
  return (path, operand, pointer) => {
    const bound: Bound = Object.freeze({ value: parseScalar(operand, pointer), inclusive })
    return testField(
      path,
      side === 'from' ? { kind: 'range', from: bound } : { kind: 'range', to: bound },
    )
  }
}

function between(path: FieldPath, operand: unknown, pointer: string): Condition {
  const ends = rangeEnds(operand)
  if (ends === undefined)
    throw makeInvalidFault(pointer, 'must be {"from": …, "to": …} or a list of two values')
  const [fromKey, toKey] = Array.isArray(operand) ? [0, 1] : ['from', 'to']
  const from = parseScalar(ends[0], extendPointer(pointer, fromKey))
  const to = parseScalar(ends[1], extendPointer(pointer, toKey))
  // Values of two types have no order, so such a range can only be a mistake.
  if (typeof from !== typeof to)
    throw makeInvalidFault(pointer, 'must have two ends of the same type')
  return testField(path, {
    kind: 'range',
    from: Object.freeze({ value: from, inclusive: true }),
    to: Object.freeze({ value: to, inclusive: true }),
  })
}

function rangeEnds(operand: unknown): readonly [unknown, unknown] | undefined {
  if (Array.isArray(operand)) return operand.length === 2 ? [operand[0], operand[1]] : undefined
  if (!isRecord(operand) || Object.keys(operand).length !== 2) return undefined
  return 'from' in operand && 'to' in operand ? [operand.from, operand.to] : undefined
}

function affix(kind: 'starts' | 'ends', ignoreCase: boolean): Operator {
  return (path, operand, pointer) =>
    testField(path, { kind, text: parseText(operand, pointer), ignoreCase })
}

function includes(path: FieldPath, operand: unknown, pointer: string): Condition {
  return testField(path, {
    kind: 'includes',
    value: parseScalar(operand, pointer),
    ignoreCase: false,
  })
}

function includesIgnoringCase(path: FieldPath, operand: unknown, pointer: string): Condition {
  return testField(path, { kind: 'includes', value: parseText(operand, pointer), ignoreCase: true })
}

function matches(path: FieldPath, operand: unknown, pointer: string): Condition {
  return testField(path, {
    kind: 'matches',
    pattern: translatePattern(parseText(operand, pointer), pointer),
  })
}

function inBlock(path: FieldPath, operand: unknown, pointer: string): Condition {
  return testField(path, { kind: 'in-block', block: parseBlock(operand, pointer) })
}

/** Parses an operand that is base64 of the text that the field must equal. */
function base64(path: FieldPath, operand: unknown, pointer: string): Condition {
  const encoded = parseText(operand, pointer)
  const bytes = Buffer.from(encoded, 'base64')
  const text = bytes.toString('utf8')
  const withoutPadding = (each: string) => each.replace(/={1,2}$/, '')
  // Node skips characters that it cannot read, in base64 as in UTF-8; only text that encodes back to the same was
  // read completely.
  const readWhole = withoutPadding(bytes.toString('base64')) === withoutPadding(encoded)
  if (!readWhole || !Buffer.from(text).equals(bytes))
    throw makeInvalidFault(pointer, 'must be base64 of a UTF-8 text')
  return parseIs(path, text, pointer)
}

function inDataSet(path: FieldPath, operand: unknown, pointer: string): Condition {
  const set = parseText(operand, pointer)
  if (!dataSetName.test(set)) throw makeInvalidFault(pointer, 'must be the name of a data set')
  return testField(path, { kind: 'in-data-set', set })
}

function inCountry(path: FieldPath, operand: unknown, pointer: string): Condition {
  const country = parseText(operand, pointer).toUpperCase()
  if (!countryCode.test(country))
    throw makeInvalidFault(
      pointer,
      'must be the two letters of a country (ISO 3166-1), such as "DE"',
    )
  return testField(path, { kind: 'in-data-set', set: countrySet, country })
}

function flag(make: (path: FieldPath) => Condition): Operator {
  return (path, operand, pointer) =>
    parseBoolean(operand, pointer) ? make(path) : negate(make(path))
}

function negated(operator: Operator): Operator {
  return (path, operand, pointer) => negate(operator(path, operand, pointer))
}
