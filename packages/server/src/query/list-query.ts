import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../base/fault.ts'
import { type Condition, type FieldPath, listDataSetNames } from './condition.ts'
import { parseFieldPath } from './field-path.ts'
import { type JoinedFind, parseFind, parseJoinedFind } from './find.ts'
import {
  collectUsedFields,
  type Join,
  listJoinedSources,
  type SourceUse,
  type UsedFields,
} from './join.ts'
import { type Nearest, parseNearest } from './nearest.ts'
import { parseSelect, type Selection } from './select.ts'

/** The query members of a POST /list request; none of them is trusted. */
export type ListRequest = {
  readonly find?: unknown
  readonly select?: unknown
  readonly limit?: unknown
  readonly offset?: unknown
  readonly sortBy?: unknown
  readonly orderBy?: unknown
  readonly sortDirection?: unknown
  readonly include_history?: unknown
  readonly nearest?: unknown
}

export type Sort = {
  readonly path: FieldPath
  readonly descending: boolean
  /** The place of null and missing; undefined: after everything, in descending order before it. */
  readonly nulls?: 'first' | 'last' | undefined
  /** The order of rows that this one leaves equal; no request has it, and no page is continued by it. */
  readonly next?: readonly Sort[]
}

/** A checked list query; frozen. */
export type ListQuery = {
  readonly where: Condition
  /** The records of other collections that each record is given with. */
  readonly joins: readonly Join[]
  /** Undefined gives whole records. */
  readonly select: Selection | undefined
  /** Undefined is the order of storing. */
  readonly sort: Sort | undefined
  /** Stands in place of an order; records without a list of as many numbers are left out. */
  readonly nearest?: Nearest | undefined
  /** Undefined is no limit but the caps. */
  readonly limit: number | undefined
  readonly offset: number
  /** Reads every version of a record, deleted ones too, instead of the latest. */
  readonly history: boolean
}

/** Parses the query that a request states, or throws a 400 that names the place, as for a join. */
export function parseList(request: ListRequest): ListQuery {
  return buildListQuery(request, { where: parseFind(request.find), joins: [] })
}

/** Parses the same with joins. Before compiling it, the caller checks each source of `collectListSources`. */
export function parseJoinedList(request: ListRequest): ListQuery {
  return buildListQuery(request, parseJoinedFind(request.find))
}

function buildListQuery(request: ListRequest, find: JoinedFind): ListQuery {
  const { sort, limit, offset } = parsePage(request)
  const nearest = parseNearest(request.nearest)
  if (nearest !== undefined) refuseBesideNearest({ sort, limit, joins: find.joins })
  // Builds the query member by member: spreading and freezing is slow, and this is a part of every read.
  return Object.freeze({
    where: find.where,
    joins: find.joins,
    select: parseSelect(request.select),
    sort,
    nearest,
    limit,
    offset,
    history: parseHistory(request.include_history),
  })
}

function refuseBesideNearest({
  sort,
  limit,
  joins,
}: Pick<ListQuery, 'sort' | 'limit' | 'joins'>): void {
  if (sort !== undefined) throw makeInvalidFault('/sortBy', 'has no place beside nearest')
  if (joins.length > 0) throw makeInvalidFault('/find', 'cannot have joins beside nearest')
  if (limit === undefined) throw makeInvalidFault('/limit', 'is needed beside nearest')
}

/** Parses the order and the page that a request asks for. */
export function parsePage(request: ListRequest): Pick<ListQuery, 'sort' | 'limit' | 'offset'> {
  return {
    sort: parseSort(request),
    limit: parseCount(request.limit, '/limit', limits.rowsMax),
    offset: parseCount(request.offset, '/offset', limits.offsetMax) ?? 0,
  }
}

/** Lists the dotted names of the fields that a query filters by, sorts by and gives (`all`: the whole record). */
export function listUsedFields(query: ListQuery): UsedFields {
  const { where, joins, select, sort, nearest } = query
  const used = collectUsedFields({ where, joins, select, sort: sort?.path ?? nearest?.path })
  // A distance tells of the list that it is of.
  const shown = nearest?.as === undefined || used.select === 'all' ? [] : [nearest.path.join('.')]
  return shown.length === 0 ? used : { ...used, select: [...new Set([...used.select, ...shown])] }
}

/**
 * Finds the field of a list that asks for nothing but the records between two values of a field, in its order;
 * undefined for any other list.
 */
export function findSortedRange({ where, sort, ...rest }: ListQuery): FieldPath | undefined {
  if (sort === undefined || sort.next !== undefined || sort.nulls !== undefined) return undefined
  if (rest.joins.length > 0 || rest.history || rest.nearest !== undefined) return undefined
  const field = sort.path.join('.')
  const ends = (where.kind === 'all' ? where.conditions : [where]).flatMap((each) => {
    if (each.kind !== 'range' || each.path.join('.') !== field) return ['other']
    return [...(each.from ? ['from'] : []), ...(each.to ? ['to'] : [])]
  })
  const isRange = ends.includes('from') && ends.includes('to') && !ends.includes('other')
  return isRange ? sort.path : undefined
}

/** Collects every use of a collection, the root's first. */
export function collectListSources(query: ListQuery, root: string): readonly SourceUse[] {
  const dataSets = listDataSetNames(query.where)
  return [
    { model: root, kind: 'rows', used: listUsedFields(query), dataSets },
    ...listJoinedSources(query.joins),
  ]
}

function parseSort(request: ListRequest): Sort | undefined {
  const sortBy = request.sortBy ?? undefined
  const orderBy = request.orderBy ?? undefined
  if (sortBy !== undefined && orderBy !== undefined && sortBy !== orderBy) {
    throw makeInvalidFault('/orderBy', 'is another name of sortBy; send one')
  }
  const descending = parseDescending(request.sortDirection)
  const name = sortBy ?? orderBy
  if (name === undefined) return undefined
  const pointer = sortBy === undefined ? '/orderBy' : '/sortBy'
  if (typeof name !== 'string') throw makeInvalidFault(pointer, 'must be the name of a field')
  return Object.freeze({ path: parseFieldPath(name, pointer), descending })
}

function parseDescending(direction: unknown): boolean {
  if (direction === undefined || direction === null) return false
  const name = typeof direction === 'string' ? direction.toLowerCase() : undefined
  if (name === 'ascending' || name === 'asc') return false
  if (name === 'descending' || name === 'desc') return true
  throw makeInvalidFault('/sortDirection', 'must be ascending or descending (asc, desc)')
}

function parseCount(value: unknown, pointer: string, most: number): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > most) {
    throw makeInvalidFault(pointer, `must be a whole number from 0 to ${most}`)
  }
  return value
}

/** Parses `include_history`. */
export function parseHistory(value: unknown): boolean {
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean')
    throw makeInvalidFault('/include_history', 'must be true or false')
  return value
}
