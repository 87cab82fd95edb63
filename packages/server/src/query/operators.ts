import { limits } from '@tollbase/contract/limits'
import { invalid } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { parseBlock } from './address.ts'
import {
  any,
  type Bound,
  type Condition,
  type FieldPath,
  field,
  never,
  not,
  type Scalar,
} from './condition.ts'
import { countryCode, countrySet, dataSetName } from './data-set.ts'
import { member } from './field-path.ts'
import { booleanOperand, scalarOperand, textOperand } from './operand.ts'
import { translatePattern } from './pattern.ts'
import { searchOperand } from './search.ts'

type Operator = (path: FieldPath, operand: unknown, pointer: string) => Condition

/** Every operator by its wire name, in both vocabularies of the public clients. */
export const operators: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['is', is],
  ['eq', is],
  ['isNot', negated(is)],
  ['ne', negated(is)],
  ['in', oneOf],
  ['notIn', negated(oneOf)],
  ['isNull', flag((path) => field(path, { kind: 'null' }))],
  ['isNotNull', flag((path) => not(field(path, { kind: 'null' })))],
  ['exists', flag((path) => field(path, { kind: 'exists' }))],
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
  ['search', (path, operand, pointer) => field(path, searchOperand(operand, pointer))],
  ['regExpMatches', matches],
  ['CIDR', inBlock],
  ['cidr', inBlock],
  ['isLocalIp', flag((path) => field(path, { kind: 'address', local: true }))],
  ['isExternalIp', flag((path) => field(path, { kind: 'address', local: false }))],
  ['b64', base64],
  ['inCountry', inCountry],
  ['inDataset', inDataSet],
])

/** The field equals the operand; also what a bare value means. */
export function is(path: FieldPath, operand: unknown, pointer: string): Condition {
  if (operand === null) return field(path, { kind: 'null' })
  return field(path, { kind: 'one-of', values: Object.freeze([equalityOperand(operand, pointer)]) })
}

function oneOf(path: FieldPath, operand: unknown, pointer: string): Condition {
  if (!Array.isArray(operand)) throw invalid(pointer, 'must be a list')
  const items: readonly unknown[] = operand
  if (items.length > limits.inListMax)
    throw invalid(pointer, `has more than ${limits.inListMax} values`)
  const values = items.flatMap((item, index) => {
    return item === null ? [] : [equalityOperand(item, member(pointer, index))]
  })
  return any([
    values.length === 0 ? never : field(path, { kind: 'one-of', values: Object.freeze(values) }),
    items.includes(null) ? field(path, { kind: 'null' }) : never,
  ])
}

function equalityOperand(operand: unknown, pointer: string): Scalar {
  if (typeof operand === 'object') {
    throw invalid(
      pointer,
      'must be a string, a number, true, false or null; nested fields are compared one by one',
    )
  }
  return scalarOperand(operand, pointer)
}

function comparison(side: 'from' | 'to', inclusive: boolean): Operator {
  return (path, operand, pointer) => {
    const bound: Bound = Object.freeze({ value: scalarOperand(operand, pointer), inclusive })
    return field(
      path,
      side === 'from' ? { kind: 'range', from: bound } : { kind: 'range', to: bound },
    )
  }
}

function between(path: FieldPath, operand: unknown, pointer: string): Condition {
  const ends = rangeEnds(operand)
  if (ends === undefined)
    throw invalid(pointer, 'must be {"from": …, "to": …} or a list of two values')
  const [fromKey, toKey] = Array.isArray(operand) ? [0, 1] : ['from', 'to']
  const from = scalarOperand(ends[0], member(pointer, fromKey))
  const to = scalarOperand(ends[1], member(pointer, toKey))
  // Values of two types have no order between them, so such a range can only be a mistake.
  if (typeof from !== typeof to) throw invalid(pointer, 'must have two ends of the same type')
  return field(path, {
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
    field(path, { kind, text: textOperand(operand, pointer), ignoreCase })
}

function includes(path: FieldPath, operand: unknown, pointer: string): Condition {
  return field(path, {
    kind: 'includes',
    value: scalarOperand(operand, pointer),
    ignoreCase: false,
  })
}

function includesIgnoringCase(path: FieldPath, operand: unknown, pointer: string): Condition {
  return field(path, { kind: 'includes', value: textOperand(operand, pointer), ignoreCase: true })
}

function matches(path: FieldPath, operand: unknown, pointer: string): Condition {
  return field(path, {
    kind: 'matches',
    pattern: translatePattern(textOperand(operand, pointer), pointer),
  })
}

function inBlock(path: FieldPath, operand: unknown, pointer: string): Condition {
  return field(path, { kind: 'in-block', block: parseBlock(operand, pointer) })
}

/** The operand is base64 of the text that the field must equal. */
function base64(path: FieldPath, operand: unknown, pointer: string): Condition {
  const encoded = textOperand(operand, pointer)
  const bytes = Buffer.from(encoded, 'base64')
  const text = bytes.toString('utf8')
  const withoutPadding = (each: string) => each.replace(/={1,2}$/, '')
  // Node skips what it cannot read, in base64 as in UTF-8; only what comes back the same was read whole.
  const readWhole = withoutPadding(bytes.toString('base64')) === withoutPadding(encoded)
  if (!readWhole || !Buffer.from(text).equals(bytes))
    throw invalid(pointer, 'must be base64 of a UTF-8 text')
  return is(path, text, pointer)
}

function inDataSet(path: FieldPath, operand: unknown, pointer: string): Condition {
  const set = textOperand(operand, pointer)
  if (!dataSetName.test(set)) throw invalid(pointer, 'must be the name of a data set')
  return field(path, { kind: 'in-data-set', set })
}

function inCountry(path: FieldPath, operand: unknown, pointer: string): Condition {
  const country = textOperand(operand, pointer).toUpperCase()
  if (!countryCode.test(country))
    throw invalid(pointer, 'must be the two letters of a country (ISO 3166-1), such as "DE"')
  return field(path, { kind: 'in-data-set', set: countrySet, country })
}

function flag(make: (path: FieldPath) => Condition): Operator {
  return (path, operand, pointer) =>
    booleanOperand(operand, pointer) ? make(path) : not(make(path))
}

function negated(operator: Operator): Operator {
  return (path, operand, pointer) => not(operator(path, operand, pointer))
}
