import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { recordCalls } from '../../query/sql/read-record-call.ts'
import { aggregates, windowFunctions } from '../../query/tree/aggregates.ts'
import { type DefinitionPlace, enterMember, type ReadPart } from './definition-place.ts'
import { joinSql, type MarkedSql } from './marked-sql.ts'
import { type Operator, type OperatorCall, readOperands, toOperandJson } from './operator.ts'
import { printNumber, printRelation, printText } from './print-names.ts'
import { readOrder } from './read-order.ts'
import type { Json } from './view-definition.ts'

const parts = ['distinct', 'order_by', 'filter', 'over']

/** Finds the aggregate or window function of a name. */
export function findAggregate(name: string): Operator | undefined {
  if (windowFunctions.has(name)) return { beside: ['over'], read: readAggregate }
  if (name === 'countDistinct') return { beside: [], read: readCountDistinct }
  return aggregates.has(name) || name === 'last'
    ? { beside: parts, read: readAggregate }
    : undefined
}

export function listAggregateNames(): readonly string[] {
  return [...aggregates.keys(), 'last', 'countDistinct', ...windowFunctions.keys()]
}

/** Reads `$countDistinct`, the name in requests for a count of distinct values. */
function readCountDistinct(call: OperatorCall): ReadPart {
  const { operand } = call
  return readAggregate({ ...call, name: '$count', object: { $count: operand, distinct: true } })
}

function readAggregate(call: OperatorCall): ReadPart {
  const { name, object, place } = call
  const args = readArguments(call)
  const { distinct = false, order_by: order, filter, over } = object
  if (typeof distinct !== 'boolean')
    throw makeInvalidFault(enterMember(place, 'distinct').pointer, 'must be true or false')
  const isLast = name === '$last'
  if (isLast && order !== undefined)
    throw makeInvalidFault(
      enterMember(place, 'order_by').pointer,
      'cannot stand beside $last; turn it for $first',
    )
  const ordered = order === undefined ? undefined : readOrder(order, enterMember(place, 'order_by'))
  const isStored = ordered === undefined && (isLast || name === '$first')
  const orderSql = isStored ? storedOrder(place, isLast) : ordered?.sql
  const test =
    filter === undefined ? undefined : place.expression(filter, enterMember(place, 'filter'))
  const window = over === undefined ? undefined : readWindow(over, enterMember(place, 'over'))
  const isWithin = aggregates.get(name.slice(1))?.within === true
  const orderText = orderSql === undefined ? '' : ['ORDER BY ', orderSql]
  return {
    json: {
      [name]: args.json,
      ...(distinct ? { distinct } : {}),
      ...(ordered === undefined ? {} : { order_by: ordered.json }),
      ...(test === undefined ? {} : { filter: test.json }),
      ...(window === undefined ? {} : { over: window.json }),
    },
    sql: [
      `pg_catalog."${isLast ? 'first' : name.slice(1)}"(${distinct ? 'DISTINCT ' : ''}`,
      args.sql,
      isWithin ? [') WITHIN GROUP (', orderText] : [' ', orderText],
      ')',
      test === undefined ? '' : [' FILTER (WHERE ', test.sql, ')'],
      window === undefined ? '' : [' OVER (', window.sql, ')'],
    ],
  }
}

function readArguments(call: OperatorCall): ReadPart {
  const { name, operand, at } = call
  if (name === '$count' && operand === '*') return { json: '*', sql: '*' }
  if (name === '$count' && typeof operand === 'string' && operand.endsWith('.*')) {
    const relation = printRelation(operand.slice(0, -2), at.pointer)
    return { json: operand, sql: `${recordCalls.record}(${relation})` }
  }
  const args = readOperands(call, { least: 0, most: Number.POSITIVE_INFINITY })
  const sql = joinSql(
    args.map((each) => each.sql),
    ', ',
  )
  return { json: toOperandJson(args), sql }
}

/** Prints the order in which the records of all sources were stored. */
function storedOrder({ relations }: DefinitionPlace, descending: boolean): MarkedSql | undefined {
  if (relations.length === 0) return undefined
  const order = descending ? ' DESC' : ''
  return relations.map((each) => `${recordCalls.place}(${each})${order}`).join(', ')
}

function readWindow(over: unknown, place: DefinitionPlace): ReadPart {
  if (!isRecord(over))
    throw makeInvalidFault(place.pointer, 'must be {partition_by, order_by, frame}')
  const foreign = Object.keys(over).find(
    (key) => !['partition_by', 'order_by', 'frame'].includes(key),
  )
  if (foreign !== undefined)
    throw makeInvalidFault(
      enterMember(place, foreign).pointer,
      'is none of partition_by, order_by, frame',
    )
  const { partition_by: partition, order_by: order, frame } = over
  const groups =
    partition === undefined ? [] : readList(partition, enterMember(place, 'partition_by'))
  const ordered = order === undefined ? undefined : readOrder(order, enterMember(place, 'order_by'))
  const framed = frame === undefined ? undefined : readFrame(frame, enterMember(place, 'frame'))
  const partitionSql = joinSql(
    groups.map((each) => each.sql),
    ', ',
  )
  return {
    json: {
      ...(groups.length === 0 ? {} : { partition_by: groups.map((each) => each.json) }),
      ...(ordered === undefined ? {} : { order_by: ordered.json }),
      ...(framed === undefined ? {} : { frame: framed.json }),
    },
    sql: [
      groups.length === 0 ? '' : ['PARTITION BY ', partitionSql],
      ordered === undefined ? '' : [' ORDER BY ', ordered.sql],
      framed === undefined ? '' : [' ', framed.sql],
    ],
  }
}

function readList(value: unknown, place: DefinitionPlace): readonly ReadPart[] {
  if (!Array.isArray(value)) return [place.expression(value, place)]
  return value.map((item: unknown, index) => place.expression(item, enterMember(place, index)))
}

const modes = ['rows', 'range', 'groups']
const ends = ['unbounded preceding', 'current row', 'unbounded following']
const excluded = ['current row', 'group', 'ties']

/** Reads {mode, from, to, exclude}; an end is in words, or {"preceding": 2}. */
function readFrame(frame: unknown, place: DefinitionPlace): ReadPart {
  if (!isRecord(frame)) throw makeInvalidFault(place.pointer, 'must be {mode, from, to, exclude}')
  const { mode, from, to = 'current row', exclude } = frame
  const foreign = Object.keys(frame).find((key) => !['mode', 'from', 'to', 'exclude'].includes(key))
  if (foreign !== undefined)
    throw makeInvalidFault(
      enterMember(place, foreign).pointer,
      'is none of mode, from, to, exclude',
    )
  const word = readWord(mode, modes, enterMember(place, 'mode'))
  const [first, last] = [
    readEnd(from, enterMember(place, 'from')),
    readEnd(to, enterMember(place, 'to')),
  ]
  const without =
    exclude === undefined ? '' : readWord(exclude, excluded, enterMember(place, 'exclude'))
  const ending = without === '' ? '' : ` EXCLUDE ${without}`
  return {
    json: {
      mode: word,
      from: first.json,
      to: last.json,
      ...(without === '' ? {} : { exclude: without }),
    },
    sql: `${word} BETWEEN ${first.text} AND ${last.text}${ending}`,
  }
}

function readWord(value: unknown, words: readonly string[], { pointer }: DefinitionPlace): string {
  const word = words.find((each) => each === value)
  if (word === undefined) throw makeInvalidFault(pointer, `must be one of ${words.join(', ')}`)
  return word
}

function readEnd(
  end: unknown,
  place: DefinitionPlace,
): { readonly json: Json; readonly text: string } {
  if (!isRecord(end)) {
    const word = readWord(end, ends, place)
    return { json: word, text: word }
  }
  const [[direction = '', given] = [], second] = Object.entries(end)
  const isDirection = direction === 'preceding' || direction === 'following'
  const text = isDirection && second === undefined ? printDistance(given, place) : undefined
  if (text === undefined)
    throw makeInvalidFault(
      place.pointer,
      `must be ${ends.join(', ')}, {"preceding": n} or {"following": n}`,
    )
  const { json, sql } = text
  return { json: { [direction]: json }, text: `${sql} ${direction}` }
}

/** Prints a number of rows, or for RANGE how far values may be away: a number, or an interval. */
function printDistance(value: unknown, { pointer }: DefinitionPlace) {
  if (typeof value === 'string')
    return { json: value, sql: `interval ${printText(value, pointer)}` }
  const isCount = typeof value === 'number' && value >= 0 && value <= limits.offsetMax
  return isCount ? { json: value, sql: printNumber(value, pointer) } : undefined
}
