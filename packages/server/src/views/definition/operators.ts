import { limits } from '@tollbase/contract/limits'
import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { timeFunctions } from '../../query/sql/read-call.ts'
import { castTypes } from '../../query/sql/read-cast.ts'
import { functions } from '../../query/tree/functions.ts'
import { numberText } from '../../query/tree/make-expression.ts'
import { aggregateNamed, aggregateNames } from './aggregate-operators.ts'
import { inside, type Place, type Read } from './definition-place.ts'
import { findOperator } from './find-operator.ts'
import { joined, type MarkedSql } from './marked-sql.ts'
import { type Call, listed, type Operator, operands } from './operator.ts'
import { numberSql, textSql } from './print-names.ts'

/** The operator of a name with its `$`; undefined where there is none. */
export function operatorNamed(name: string): Operator | undefined {
  return own.get(name) ?? aggregateNamed(name.slice(1)) ?? functionNamed(name.slice(1))
}

/** The names of all, without functions of the time, which a view cannot have. */
export function operatorNames(): readonly string[] {
  const called = [...functions.keys(), ...aggregateNames()]
  return [...own.keys(), ...called.map((name) => `$${name}`)]
}

/** Operators between their operands, by what they are in SQL; the first three take more than two. */
export const infixes: ReadonlyMap<string, string> = new Map([
  ['$add', '+'],
  ['$multiply', '*'],
  ['$append', '||'],
  ['$subtract', '-'],
  ['$divide', '/'],
  ['$eq', '='],
  ['$ne', '<>'],
  ['$gt', '>'],
  ['$gte', '>='],
  ['$lt', '<'],
  ['$lte', '<='],
  ['$distinct_from', 'IS DISTINCT FROM'],
  ['$get', '->'],
  ['$get_text', '->>'],
])
const chained: ReadonlySet<string> = new Set(['$add', '$multiply', '$append'])

/** Tests of one operand, by what stands behind it in SQL. */
export const tests: ReadonlyMap<string, string> = new Map([
  ['$is_null', 'IS NULL'],
  ['$is_true', 'IS TRUE'],
  ['$is_false', 'IS FALSE'],
  ['$is_unknown', 'IS UNKNOWN'],
])

const own: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['$literal', { beside: [], read: readLiteral }],
  ['$number', { beside: [], read: readNumber }],
  ['$and', { beside: [], read: logical(' AND ') }],
  ['$or', { beside: [], read: logical(' OR ') }],
  ['$not', { beside: [], read: prefixed('NOT ') }],
  ['$negate', { beside: [], read: prefixed('- ') }],
  ...[...infixes].map(([name, sign]) => [name, { beside: [], read: infix(sign) }] as const),
  ...[...tests].map(([name, test]) => [name, { beside: [], read: tested(test) }] as const),
  ['$between', { beside: [], read: readBetween }],
  ['$in', { beside: [], read: readIn }],
  ['$like', { beside: ['pattern', 'ignore_case'], read: matched({ sign: 'LIKE', any: 'ILIKE' }) }],
  ['$matches', { beside: ['pattern', 'ignore_case'], read: matched({ sign: '~', any: '~*' }) }],
  ['$case', { beside: ['else'], read: readCase }],
  ['$cast', { beside: ['to'], read: readCast }],
  ['$query', { beside: [], read: subQuery('') }],
  ['$exists', { beside: [], read: subQuery('EXISTS ') }],
  ['$find', findOperator],
])

function functionNamed(name: string): Operator | undefined {
  if (timeFunctions.has(name) || timeFunctions.has(`SVFOP_${name.toUpperCase()}`))
    return { beside: [], read: refuseTime }
  return functions.has(name) ? { beside: [], read: readFunction } : undefined
}

function refuseTime({ at }: Call): Read {
  throw invalid(at.pointer, 'is the time, but a view may change with nothing but its sources')
}

function readFunction(call: Call): Read {
  const args = operands(call, { least: 0, most: Number.POSITIVE_INFINITY })
  return { json: { [call.name]: listed(args) }, sql: calledSql(call.name, args) }
}

/** A function by its full name, which no syntax of SQL's own can get in the way of. */
export function calledSql(name: string, args: readonly Read[]): MarkedSql {
  const list = joined(
    args.map((each) => each.sql),
    ', ',
  )
  return [`pg_catalog."${name.slice(1)}"(`, list, ')']
}

function readLiteral({ name, operand, at }: Call): Read {
  return { json: { [name]: scalarOf(operand, at) }, sql: literalSql(operand, at) }
}

function scalarOf(value: unknown, { pointer }: Place): string | number | boolean | null {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return value
  throw invalid(pointer, 'must be a string, a number, true, false or null')
}

function literalSql(value: unknown, place: Place): string {
  const scalar = scalarOf(value, place)
  if (typeof scalar === 'string') return textSql(scalar, place.pointer)
  if (typeof scalar === 'number') return numberSql(scalar, place.pointer)
  return scalar === null ? 'NULL' : scalar ? 'TRUE' : 'FALSE'
}

/** A decimal number with all its digits. */
function readNumber({ name, operand, at }: Call): Read {
  const text = typeof operand === 'string' ? numberText(operand) : undefined
  if (text === undefined) throw invalid(at.pointer, 'must be a decimal number as a string')
  return { json: { [name]: text }, sql: `(${text})` }
}

function logical(word: string): Operator['read'] {
  return (call) => {
    const parts = operands(call, { least: 1, most: Number.POSITIVE_INFINITY })
    const sql = joined(
      parts.map((each) => each.sql),
      word,
    )
    return { json: { [call.name]: parts.map((each) => each.json) }, sql: ['(', sql, ')'] }
  }
}

function prefixed(word: string): Operator['read'] {
  return (call) => {
    const [only] = operands(call, { least: 1, most: 1 })
    return made(call, only?.json ?? null, [`(${word}`, only?.sql ?? '', ')'])
  }
}

function infix(sign: string): Operator['read'] {
  return (call) => {
    const most = chained.has(call.name) ? Number.POSITIVE_INFINITY : 2
    const parts = operands(call, { least: 2, most })
    const sql = joined(
      parts.map((each) => each.sql),
      ` ${sign} `,
    )
    return made(call, listed(parts), ['(', sql, ')'])
  }
}

function tested(test: string): Operator['read'] {
  return (call) => {
    const [only] = operands(call, { least: 1, most: 1 })
    return made(call, only?.json ?? null, ['(', only?.sql ?? '', ` ${test})`])
  }
}

function made({ name }: Call, operand: Read['json'], sql: MarkedSql): Read {
  return { json: { [name]: operand }, sql }
}

function readBetween(call: Call): Read {
  const parts = operands(call, { least: 3, most: 3 })
  const [value, from, to] = parts.map((each) => each.sql)
  const sql = ['(', value ?? '', ' BETWEEN ', from ?? '', ' AND ', to ?? '', ')']
  return made(call, listed(parts), sql)
}

/** One of a list of expressions, of a list of literals, or of the rows of a query. */
function readIn(call: Call): Read {
  const { operand, at } = call
  const [value, list, ...rest]: readonly unknown[] = Array.isArray(operand) ? operand : []
  if (list === undefined || rest.length > 0)
    throw invalid(at.pointer, 'must be [expression, list], the list being expressions or a query')
  const left = at.expression(value, inside(at, 0))
  const right = readItems(list, inside(at, 1))
  return made(call, [left.json, right.json], ['(', left.sql, ' IN (', right.sql, '))'])
}

function readItems(list: unknown, place: Place): Read {
  const isLiterals = isRecord(list) && '$literal' in list
  if (!Array.isArray(list) && !isLiterals) return place.query(list, place)
  const items: unknown = isLiterals ? list.$literal : list
  const at = isLiterals ? inside(place, '$literal') : place
  if (!Array.isArray(items)) throw invalid(at.pointer, 'must be a list')
  if (items.length === 0) throw invalid(at.pointer, 'must not be empty')
  if (items.length > limits.inListMax)
    throw invalid(at.pointer, `has more than ${limits.inListMax} values`)
  if (isLiterals) {
    const json = items.map((item, index) => scalarOf(item, inside(at, index)))
    const sql = json.map((item, index) => literalSql(item, inside(at, index))).join(', ')
    return { json: { $literal: json }, sql }
  }
  const reads = items.map((item, index) => at.expression(item, inside(at, index)))
  return {
    json: reads.map((each) => each.json),
    sql: joined(
      reads.map((each) => each.sql),
      ', ',
    ),
  }
}

function matched(signs: { readonly sign: string; readonly any: string }): Operator['read'] {
  return (call) => {
    const { object, place } = call
    const [only] = operands(call, { least: 1, most: 1 })
    const pattern = inside(place, 'pattern')
    if (typeof object.pattern !== 'string') throw invalid(pattern.pointer, 'must be a string')
    const ignore = object.ignore_case ?? false
    if (typeof ignore !== 'boolean')
      throw invalid(inside(place, 'ignore_case').pointer, 'must be true or false')
    const sign = ignore ? signs.any : signs.sign
    const text = textSql(object.pattern, pattern.pointer)
    return {
      json: {
        [call.name]: only?.json ?? null,
        pattern: object.pattern,
        ...(ignore ? { ignore_case: true } : {}),
      },
      sql: ['(', only?.sql ?? '', ` ${sign} ${text})`],
    }
  }
}

function readCase({ operand, object, place, at }: Call): Read {
  if (!Array.isArray(operand) || operand.length === 0)
    throw invalid(at.pointer, 'must be a list of {"when": condition, "value": value}')
  const branches = operand.map((branch: unknown, index) => {
    const own = inside(at, index)
    const isBranch = isRecord(branch) && Object.keys(branch).sort().join() === 'value,when'
    if (!isBranch) throw invalid(own.pointer, 'must be {"when": condition, "value": value}')
    return {
      when: at.expression(branch.when, inside(own, 'when')),
      value: at.expression(branch.value, inside(own, 'value')),
    }
  })
  const otherwise =
    object.else === undefined ? undefined : at.expression(object.else, inside(place, 'else'))
  return {
    json: {
      $case: branches.map(({ when, value }) => ({ when: when.json, value: value.json })),
      ...(otherwise === undefined ? {} : { else: otherwise.json }),
    },
    sql: [
      '(CASE',
      ...branches.map(({ when, value }) => [' WHEN ', when.sql, ' THEN ', value.sql]),
      otherwise === undefined ? '' : [' ELSE ', otherwise.sql],
      ' END)',
    ],
  }
}

const typeForm = /^([a-z][a-z0-9]*)(?:\( ?\d{1,4} ?(?:, ?\d{1,3} ?)?\))?$/

function readCast(call: Call): Read {
  const { object, place } = call
  const [only] = operands(call, { least: 1, most: 1 })
  const { to } = object
  const [type, name] = (typeof to === 'string' ? typeForm.exec(to) : undefined) ?? []
  if (type === undefined || name === undefined || !castTypes.has(name))
    throw invalid(
      inside(place, 'to').pointer,
      `must be a type: ${[...castTypes.keys()].join(', ')}`,
    )
  return {
    json: { [call.name]: only?.json ?? null, to: type },
    sql: ['CAST(', only?.sql ?? '', ` AS ${type})`],
  }
}

function subQuery(word: string): Operator['read'] {
  return (call) => {
    const { json, sql } = call.at.query(call.operand, call.at)
    return made(call, json, [`(${word}(`, sql, '))'])
  }
}
