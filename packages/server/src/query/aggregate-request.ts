import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import type { FieldPath } from './condition.ts'
import { extendPointer, parseFieldPath } from './field-path.ts'
import { parseJoinedFind } from './find.ts'
import type { Join } from './join.ts'
import { type ListRequest, parsePage } from './list-query.ts'
import { checkText } from './operand.ts'
import { makeConstant } from './tree/make-expression.ts'
import type { Expression, Order } from './tree/query.ts'
import { type Column, makeSelect, type Relation, type SelectQuery } from './tree/query.ts'

/** The members, beside `find`, of a request that asks for groups. */
export type AggregateRequest = ListRequest & {
  readonly group_by?: unknown
  readonly aggregate?: unknown
  readonly distinct?: unknown
}

/** Returns true if a request asks for groups or distinct values instead of records. */
export function isAggregate(request: AggregateRequest): boolean {
  return [request.group_by, request.aggregate, request.distinct].some(
    (each) => each !== undefined && each !== null,
  )
}

/**
 * Parses the query that a request's `group_by`, `aggregate` and `distinct` state over records of the root, or
 * throws a 400 that names the place. With joins, every pair of a record and a joined one counts, and a record
 * without any counts once.
 */
export function parseAggregate(request: AggregateRequest, root: string): SelectQuery {
  const { where, joins } = parseJoinedFind(request.find)
  const sources = buildSources(root, joins)
  const groups = groupFields(request)
  const groupBy = groups.map(({ name, pointer }) => resolveField(name, { sources, pointer }))
  const columns = [
    ...groups.map((group, at) => ({
      name: group.name,
      path: group.path,
      expression: groupBy[at] ?? makeConstant('text', null),
    })),
    ...aggregateColumns(request.aggregate, sources),
  ]
  checkNames(columns)
  const { limit, offset } = parsePage(request)
  if (request.select !== undefined && request.select !== null && !isEmpty(request.select))
    throw makeInvalidFault(
      '/select',
      'is about records; groups have the fields of group_by and aggregate',
    )
  const test: Expression = {
    kind: 'condition',
    type: 'boolean',
    relation: sources.root,
    model: root,
    condition: where,
    parent: undefined,
  }
  const unsorted = {
    ...makeSelect({ columns, from: [sources.relation], id: sources.next }),
    where: where.kind === 'always' ? undefined : test,
    grouped: true,
    groupBy,
    limit,
    offset,
  }
  return sortGroups(unsorted, request)
}

/** Returns the query of groups in the order that a request states; without one, in that of their fields. */
export function sortGroups(groups: SelectQuery, request: ListRequest): SelectQuery {
  const { sort } = parsePage(request)
  const orderBy = buildOrder(sort?.path.join('.'), sort?.descending ?? false, groups)
  return Object.freeze({ ...groups, orderBy })
}

function isEmpty(value: object | unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

type Sources = {
  readonly relation: Relation
  readonly root: number
  /** The ids of the relations of joined records, by the aliases that lead to them. */
  readonly joined: ReadonlyMap<string, number>
  readonly next: number
}

/** The root's records, each with those that are joined to it beside it. */
function buildSources(root: string, joins: readonly Join[]): Sources {
  let relation: Relation = { kind: 'collection', id: 1, model: root }
  let next = 2
  const joined = new Map<string, number>()
  const add = (list: readonly Join[], parent: number, prefix: string): void => {
    for (const join of list) {
      const id = next
      next += 1
      joined.set(`${prefix}${join.alias}`, id)
      relation = {
        kind: 'join',
        join: 'LEFT',
        left: relation,
        right: { kind: 'collection', id, model: join.model },
        on: {
          kind: 'condition',
          type: 'boolean',
          relation: id,
          model: join.model,
          condition: join.where,
          parent,
        },
      }
      add(join.joins, id, `${prefix}${join.alias}.`)
    }
  }
  add(joins, 1, '')
  return { relation, root: 1, joined, next }
}

type Named = { readonly sources: Sources; readonly pointer: string }

/**
 * Resolves a field of the root's record or, after the alias of a join, of the joined record; the alias alone is the
 * whole joined record.
 */
function resolveField(name: string, { sources, pointer }: Named): Expression {
  const path = parseFieldPath(name, pointer)
  for (let length = path.length; length > 0; length -= 1) {
    const relation = sources.joined.get(path.slice(0, length).join('.'))
    if (relation === undefined) continue
    const [first, ...rest] = path.slice(length)
    if (first === undefined) return { kind: 'record', type: 'json', relation }
    return { kind: 'field', type: 'json', relation, path: [first, ...rest] }
  }
  return { kind: 'field', type: 'json', relation: sources.root, path }
}

type Group = { readonly name: string; readonly path: FieldPath; readonly pointer: string }

function groupFields(request: AggregateRequest): readonly Group[] {
  const distinct = request.distinct ?? undefined
  const groups = request.group_by ?? undefined
  if (distinct !== undefined && (groups !== undefined || !isNothing(request.aggregate)))
    throw makeInvalidFault('/distinct', 'stands alone; with aggregates use group_by')
  const pointer = distinct === undefined ? '/group_by' : '/distinct'
  const given = distinct ?? groups ?? []
  const names: readonly unknown[] = Array.isArray(given) ? given : [given]
  if (names.length > limits.groupFieldsMax)
    throw makeInvalidFault(pointer, `has more than ${limits.groupFieldsMax} fields`)
  if (names.length === 0 && isNothing(request.aggregate))
    throw makeInvalidFault(pointer, 'names no field, and there is no aggregate')
  return names.map((name, at) => {
    const place = Array.isArray(given) ? extendPointer(pointer, at) : pointer
    if (typeof name !== 'string') throw makeInvalidFault(place, 'must be the name of a field')
    return { name, path: parseFieldPath(name, place), pointer: place }
  })
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null || isEmpty(value)
}

/** Refuses two columns of one name, or one inside another: both could not stand in a row. */
function checkNames(columns: readonly Column[]): void {
  const names = columns.map((column) => (column.path ?? [column.name]).join('.'))
  for (const [at, name] of names.entries()) {
    const other = names.find((each, index) => index !== at && `${name}.`.startsWith(`${each}.`))
    if (other !== undefined)
      throw makeInvalidFault('/aggregate', `has ${name}, which has no place beside ${other}`)
  }
}

type Make = (field: Expression | undefined, sources: Sources) => Expression

const overNumbers = (name: string) => (field: Expression | undefined) =>
  makeAggregate(name, field === undefined ? [] : [convertToNumber(field)], 'number')
const overValues = (name: string) => (field: Expression | undefined) =>
  makeAggregate(name, field === undefined ? [] : [field], 'json')

/** Every aggregate of a request, by its name on the wire. */
export const requestAggregates: ReadonlyMap<string, Make> = new Map<string, Make>([
  ['$count', (field) => makeAggregate('count', field === undefined ? [] : [field], 'number')],
  [
    '$countDistinct',
    (field) => ({
      ...makeAggregate('count', field === undefined ? [] : [field], 'number'),
      distinct: true,
    }),
  ],
  ['$sum', (field) => defaultToZero(overNumbers('sum')(field))],
  ['$avg', overNumbers('avg')],
  ['$min', overValues('min')],
  ['$max', overValues('max')],
  ['$first', (field, sources) => pickByLeaf(field, sources, false)],
  ['$last', (field, sources) => pickByLeaf(field, sources, true)],
])

function aggregateColumns(aggregate: unknown, sources: Sources): readonly Column[] {
  if (isNothing(aggregate)) return []
  if (!isRecord(aggregate))
    throw makeInvalidFault('/aggregate', 'must be an object of aggregates by name')
  const entries = Object.entries(aggregate)
  if (entries.length > limits.aggregatesMax)
    throw makeInvalidFault('/aggregate', `has more than ${limits.aggregatesMax} aggregates`)
  return entries.map(([name, call]) => {
    const pointer = extendPointer('/aggregate', name)
    const path = parseFieldPath(name, pointer)
    const calls = isRecord(call) ? Object.entries(call) : []
    const [only] = calls
    if (only === undefined || calls.length !== 1)
      throw makeInvalidFault(
        pointer,
        'must be one aggregate of a field, such as {"$sum": "amount"}',
      )
    return { name, path, expression: aggregateColumn(only, sources, pointer) }
  })
}

function aggregateColumn(
  [name, of]: readonly [string, unknown],
  sources: Sources,
  pointer: string,
): Expression {
  const make = requestAggregates.get(name)
  const place = extendPointer(pointer, name)
  if (make === undefined)
    throw makeInvalidFault(
      place,
      `is no aggregate; there are ${[...requestAggregates.keys()].join(', ')}`,
    )
  if (typeof of !== 'string') throw makeInvalidFault(place, 'must be the name of a field')
  if (of === '*' && name !== '$count')
    throw makeInvalidFault(place, 'must name a field; only $count takes *')
  checkText(of, place)
  return make(of === '*' ? undefined : resolveField(of, { sources, pointer: place }), sources)
}

function makeAggregate(
  name: string,
  args: readonly Expression[],
  type: 'number' | 'json',
): Expression & { readonly kind: 'aggregate' } {
  return {
    kind: 'aggregate',
    type,
    name,
    arguments: args,
    distinct: false,
    orderBy: [],
    filter: undefined,
  }
}

function convertToNumber(field: Expression): Expression {
  return { kind: 'convert', type: 'number', argument: field }
}

function defaultToZero(sum: Expression): Expression {
  return {
    kind: 'call',
    type: 'number',
    name: 'coalesce',
    arguments: [sum, makeConstant('number', '0')],
  }
}

/** The value of the record that was stored first or last. */
function pickByLeaf(
  field: Expression | undefined,
  sources: Sources,
  descending: boolean,
): Expression {
  const leaf = (relation: number): Order => ({
    expression: { kind: 'leaf', type: 'number', relation },
    descending,
    nulls: undefined,
  })
  const orderBy = [sources.root, ...sources.joined.values()].map(leaf)
  return { ...makeAggregate('first', field === undefined ? [] : [field], 'json'), orderBy }
}

function buildOrder(
  sortBy: string | undefined,
  descending: boolean,
  given: { readonly columns: readonly Column[]; readonly groupBy: readonly Expression[] },
): readonly Order[] {
  const groups = given.groupBy.map((expression): Order => {
    return { expression, descending: false, nulls: undefined }
  })
  if (sortBy === undefined) return groups
  const column = given.columns.find((each) => each.name === sortBy)
  if (column === undefined)
    throw makeInvalidFault('/sortBy', 'is neither a field of group_by nor the name of an aggregate')
  return [{ expression: column.expression, descending, nulls: undefined }, ...groups]
}
