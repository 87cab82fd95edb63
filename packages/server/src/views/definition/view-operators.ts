import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { timeFunctions } from '../../query/sql/read-call.ts'
import { castTypes } from '../../query/sql/read-cast.ts'
import { functions } from '../../query/tree/functions/all-functions.ts'
import { readNumberText } from '../../query/tree/make-expression.ts'
import { type DefinitionPlace, enterMember, type ReadPart } from './definition-place.ts'
import { findOperator } from './find-operator.ts'
import { joinSql, type MarkedSql } from './marked-sql.ts'
import { type Operator, type OperatorCall, readOperands, toOperandJson } from './operator.ts'
import { printNumber, printText } from './print-names.ts'
import { findAggregate, listAggregateNames } from './read-aggregate.ts'

/** Returns the operator of a name with its `$`; undefined if there is none. */
export function getOperator(name: string): Operator | undefined {
  return own.get(name) ?? findAggregate(name.slice(1)) ?? findFunction(name.slice(1))
}

/** Lists the names of all operators, without functions of the time, which a view cannot have. */
export function listOperatorNames(): readonly string[] {
  const called = [...functions.keys(), ...listAggregateNames()]
  return [...own.keys(), ...called.map((name) => `$${name}`)]
}

/** Operators between their operands, with their SQL; the first three take more than two operands. */
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
  ['$delete_path', '#-'],
  ['$get', '->'],
  ['$get_text', '->>'],
  ['$get_path', '#>'],
  ['$get_path_text', '#>>'],
  ['$contains', '@>'],
  ['$contained_in', '<@'],
  ['$has_key', '?'],
  ['$has_any_key', '?|'],
  ['$has_all_keys', '?&'],
])
const chained: ReadonlySet<string> = new Set(['$add', '$multiply', '$append'])

/** Tests of one operand, with the SQL behind it. */
export const tests: ReadonlyMap<string, string> = new Map([
  ['$is_null', 'IS NULL'],
  ['$is_true', 'IS TRUE'],
  ['$is_false', 'IS FALSE'],
  ['$is_unknown', 'IS UNKNOWN'],
])

const own: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['$literal', { beside: [], read: readLiteral }],
  ['$number', { beside: [], read: readNumber }],
  ['$and', { beside: [], read: makeLogical(' AND ') }],
  ['$or', { beside: [], read: makeLogical(' OR ') }],
  ['$not', { beside: [], read: makePrefix('NOT ') }],
  ['$negate', { beside: [], read: makePrefix('- ') }],
  ...[...infixes].map(([name, sign]) => [name, { beside: [], read: makeInfix(sign) }] as const),
  ...[...tests].map(([name, test]) => [name, { beside: [], read: makeTest(test) }] as const),
  ['$between', { beside: [], read: readBetween }],
  ['$in', { beside: [], read: readIn }],
  [
    '$like',
    { beside: ['pattern', 'ignore_case'], read: makeMatch({ sign: 'LIKE', any: 'ILIKE' }) },
  ],
  ['$matches', { beside: ['pattern', 'ignore_case'], read: makeMatch({ sign: '~', any: '~*' }) }],
  ['$case', { beside: ['else'], read: readCase }],
  ['$cast', { beside: ['to'], read: readCast }],
  ['$query', { beside: [], read: makeSubQuery('') }],
  ['$exists', { beside: [], read: makeSubQuery('EXISTS ') }],
  ['$array', { beside: [], read: readArray }],
  ['$element', { beside: [], read: readElement }],
  ['$row', { beside: [], read: readRow }],
  ['$grouping', { beside: [], read: readGrouping }],
  ['$find', findOperator],
])

function findFunction(name: string): Operator | undefined {
  if (timeFunctions.has(name) || timeFunctions.has(`SVFOP_${name.toUpperCase()}`))
    return { beside: [], read: refuseTime }
  return functions.has(name) ? { beside: [], read: readFunction } : undefined
}

function refuseTime({ at }: OperatorCall): ReadPart {
  throw makeInvalidFault(
    at.pointer,
    'is the time, but a view may change with nothing but its sources',
  )
}

function readFunction(call: OperatorCall): ReadPart {
  const args = readOperands(call, { least: 0, most: Number.POSITIVE_INFINITY })
  return { json: { [call.name]: toOperandJson(args) }, sql: printCall(call.name, args) }
}

/** Prints a function call by the function's full name, which no special syntax of SQL can interfere with. */
export function printCall(
  name: string,
  args: readonly ReadPart[],
  [begin, end]: readonly [string, string] = ['', ''],
): MarkedSql {
  const list = joinSql(
    args.map((each) => each.sql),
    ', ',
  )
  return [`pg_catalog."${name.slice(1)}"(${begin}`, list, `${end})`]
}

/** Reads a row of values, which only `$in` with a query takes. */
function readRow(call: OperatorCall): ReadPart {
  const parts = readOperands(call, { least: 2, most: Number.POSITIVE_INFINITY })
  const list = joinSql(
    parts.map((each) => each.sql),
    ', ',
  )
  return made(call, toOperandJson(parts), ['(', list, ')'])
}

/** Reads an array of values, a list of which is written even for one, or of the rows of a query. */
function readArray(call: OperatorCall): ReadPart {
  if (!Array.isArray(call.operand)) {
    const { json, sql } = call.at.query(call.operand, call.at)
    return made(call, json, ['ARRAY(', sql, ')'])
  }
  const parts = readOperands(call, { least: 1, most: Number.POSITIVE_INFINITY })
  const list = joinSql(
    parts.map((each) => each.sql),
    ', ',
  )
  return made(
    call,
    parts.map((each) => each.json),
    ['ARRAY[', list, ']'],
  )
}

/** Reads an array, and the place of one of its elements, which counts from 1. */
function readElement(call: OperatorCall): ReadPart {
  const [array, place] = readOperands(call, { least: 2, most: 2 })
  return made(call, toOperandJson([array, place].flatMap((each) => each ?? [])), [
    '((',
    array?.sql ?? '',
    ')[',
    place?.sql ?? '',
    '])',
  ])
}

function readGrouping(call: OperatorCall): ReadPart {
  const parts = readOperands(call, { least: 1, most: Number.POSITIVE_INFINITY })
  const list = joinSql(
    parts.map((each) => each.sql),
    ', ',
  )
  return made(call, toOperandJson(parts), ['GROUPING(', list, ')'])
}

function readLiteral({ name, operand, at }: OperatorCall): ReadPart {
  return { json: { [name]: readScalar(operand, at) }, sql: literalSql(operand, at) }
}

function readScalar(
  value: unknown,
  { pointer }: DefinitionPlace,
): string | number | boolean | null {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return value
  throw makeInvalidFault(pointer, 'must be a string, a number, true, false or null')
}

function literalSql(value: unknown, place: DefinitionPlace): string {
  const scalar = readScalar(value, place)
  if (typeof scalar === 'string') return printText(scalar, place.pointer)
  if (typeof scalar === 'number') return printNumber(scalar, place.pointer)
  return scalar === null ? 'NULL' : scalar ? 'TRUE' : 'FALSE'
}

/** Reads a decimal number with all its digits. */
function readNumber({ name, operand, at }: OperatorCall): ReadPart {
  const text = typeof operand === 'string' ? readNumberText(operand) : undefined
  if (text === undefined) throw makeInvalidFault(at.pointer, 'must be a decimal number as a string')
  return { json: { [name]: text }, sql: `(${text})` }
}

function makeLogical(word: string): Operator['read'] {
  return (call) => {
    const parts = readOperands(call, { least: 1, most: Number.POSITIVE_INFINITY })
    const sql = joinSql(
      parts.map((each) => each.sql),
      word,
    )
    return { json: { [call.name]: parts.map((each) => each.json) }, sql: ['(', sql, ')'] }
  }
}

function makePrefix(word: string): Operator['read'] {
  return (call) => {
    const [only] = readOperands(call, { least: 1, most: 1 })
    return made(call, only?.json ?? null, [`(${word}`, only?.sql ?? '', ')'])
  }
}

function makeInfix(sign: string): Operator['read'] {
  return (call) => {
    const most = chained.has(call.name) ? Number.POSITIVE_INFINITY : 2
    const parts = readOperands(call, { least: 2, most })
    const sql = joinSql(
      parts.map((each) => each.sql),
      ` ${sign} `,
    )
    return made(call, toOperandJson(parts), ['(', sql, ')'])
  }
}

function makeTest(test: string): Operator['read'] {
  return (call) => {
    const [only] = readOperands(call, { least: 1, most: 1 })
    return made(call, only?.json ?? null, ['(', only?.sql ?? '', ` ${test})`])
  }
}

function made({ name }: OperatorCall, operand: ReadPart['json'], sql: MarkedSql): ReadPart {
  return { json: { [name]: operand }, sql }
}

function readBetween(call: OperatorCall): ReadPart {
  const parts = readOperands(call, { least: 3, most: 3 })
  const [value, from, to] = parts.map((each) => each.sql)
  const sql = ['(', value ?? '', ' BETWEEN ', from ?? '', ' AND ', to ?? '', ')']
  return made(call, toOperandJson(parts), sql)
}

/** Reads membership in a list of expressions, in a list of literals, or in the rows of a query. */
function readIn(call: OperatorCall): ReadPart {
  const { operand, at } = call
  const [value, list, ...rest]: readonly unknown[] = Array.isArray(operand) ? operand : []
  if (list === undefined || rest.length > 0)
    throw makeInvalidFault(
      at.pointer,
      'must be [expression, list], the list being expressions or a query',
    )
  const left = at.expression(value, enterMember(at, 0))
  const right = readItems(list, enterMember(at, 1))
  return made(call, [left.json, right.json], ['(', left.sql, ' IN (', right.sql, '))'])
}

function readItems(list: unknown, place: DefinitionPlace): ReadPart {
  const isLiterals = isRecord(list) && '$literal' in list
  if (!Array.isArray(list) && !isLiterals) return place.query(list, place)
  const items: unknown = isLiterals ? list.$literal : list
  const at = isLiterals ? enterMember(place, '$literal') : place
  if (!Array.isArray(items)) throw makeInvalidFault(at.pointer, 'must be a list')
  if (items.length === 0) throw makeInvalidFault(at.pointer, 'must not be empty')
  if (items.length > limits.inListMax)
    throw makeInvalidFault(at.pointer, `has more than ${limits.inListMax} values`)
  if (isLiterals) {
    const json = items.map((item, index) => readScalar(item, enterMember(at, index)))
    const sql = json.map((item, index) => literalSql(item, enterMember(at, index))).join(', ')
    return { json: { $literal: json }, sql }
  }
  const reads = items.map((item, index) => at.expression(item, enterMember(at, index)))
  return {
    json: reads.map((each) => each.json),
    sql: joinSql(
      reads.map((each) => each.sql),
      ', ',
    ),
  }
}

function makeMatch(signs: { readonly sign: string; readonly any: string }): Operator['read'] {
  return (call) => {
    const { object, place } = call
    const [only] = readOperands(call, { least: 1, most: 1 })
    const pattern = enterMember(place, 'pattern')
    if (typeof object.pattern !== 'string')
      throw makeInvalidFault(pattern.pointer, 'must be a string')
    const ignore = object.ignore_case ?? false
    if (typeof ignore !== 'boolean')
      throw makeInvalidFault(enterMember(place, 'ignore_case').pointer, 'must be true or false')
    const sign = ignore ? signs.any : signs.sign
    const text = printText(object.pattern, pattern.pointer)
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

function readCase({ operand, object, place, at }: OperatorCall): ReadPart {
  if (!Array.isArray(operand) || operand.length === 0)
    throw makeInvalidFault(at.pointer, 'must be a list of {"when": condition, "value": value}')
  const branches = operand.map((branch: unknown, index) => {
    const own = enterMember(at, index)
    const isBranch = isRecord(branch) && Object.keys(branch).sort().join() === 'value,when'
    if (!isBranch)
      throw makeInvalidFault(own.pointer, 'must be {"when": condition, "value": value}')
    return {
      when: at.expression(branch.when, enterMember(own, 'when')),
      value: at.expression(branch.value, enterMember(own, 'value')),
    }
  })
  const otherwise =
    object.else === undefined ? undefined : at.expression(object.else, enterMember(place, 'else'))
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

const typeForm = /^([a-z][a-z0-9]*)(?:\( ?\d{1,8} ?(?:, ?\d{1,3} ?)?\))?$/

function readCast(call: OperatorCall): ReadPart {
  const { object, place } = call
  const [only] = readOperands(call, { least: 1, most: 1 })
  const { to } = object
  const [type, name] = (typeof to === 'string' ? typeForm.exec(to) : undefined) ?? []
  if (type === undefined || name === undefined || !castTypes.has(name))
    throw makeInvalidFault(
      enterMember(place, 'to').pointer,
      `must be a type: ${[...castTypes.keys()].join(', ')}`,
    )
  return {
    json: { [call.name]: only?.json ?? null, to: type },
    sql: ['CAST(', only?.sql ?? '', ` AS ${type})`],
  }
}

function makeSubQuery(word: string): Operator['read'] {
  return (call) => {
    const { json, sql } = call.at.query(call.operand, call.at)
    return made(call, json, [`(${word}(`, sql, '))'])
  }
}
