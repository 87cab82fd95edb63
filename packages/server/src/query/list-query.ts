import { limits } from '@tollbase/contract/limits'
import { invalid } from '../base/fault.ts'
import { type Condition, dataSetNames, type FieldPath } from './condition.ts'
import { parseFieldPath } from './field-path.ts'
import { type JoinedFind, parseFind, parseJoinedFind } from './find.ts'
import { type Join, joinedSources, type SourceUse, type UsedFields, usedBy } from './join.ts'
import { parseSelect, type Selection } from './select.ts'

/** What POST /list sends, as far as the query goes; nothing of it is trusted. */
export type ListRequest = {
  readonly find?: unknown
  readonly select?: unknown
  readonly limit?: unknown
  readonly offset?: unknown
  readonly sortBy?: unknown
  readonly orderBy?: unknown
  readonly sortDirection?: unknown
  readonly include_history?: unknown
}

export type Sort = {
  readonly path: FieldPath
  readonly descending: boolean
  /** Where null and missing stand; undefined: behind everything, before it in descending order. */
  readonly nulls?: 'first' | 'last' | undefined
  /** What orders rows that this leaves equal; no request has it, and no page is continued by it. */
  readonly next?: readonly Sort[]
}

/** A checked list query; frozen. */
export type ListQuery = {
  readonly where: Condition
  /** Records of other collections that each record is given with. */
  readonly joins: readonly Join[]
  /** Undefined gives whole records. */
  readonly select: Selection | undefined
  /** Undefined is the order of storing. */
  readonly sort: Sort | undefined
  /** Undefined is no limit but the caps. */
  readonly limit: number | undefined
  readonly offset: number
  /** Every version of a record, deleted ones too, instead of the latest. */
  readonly history: boolean
}

/** The query that a request states, or a 400 that names the place; 501 for joins. */
export function parseList(request: ListRequest): ListQuery {
  return listOf(request, { where: parseFind(request.find), joins: [] })
}

/** The same with joins. Before it is compiled, the caller judges each source of `sourcesOfList`. */
export function parseJoinedList(request: ListRequest): ListQuery {
  return listOf(request, parseJoinedFind(request.find))
}

function listOf(request: ListRequest, find: JoinedFind): ListQuery {
  const { sort, limit, offset } = parsePage(request)
  // Member by member: spreading and freezing is slow, and this is a part of every read.
  return Object.freeze({
    where: find.where,
    joins: find.joins,
    select: parseSelect(request.select),
    sort,
    limit,
    offset,
    history: parseHistory(request.include_history),
  })
}

/** The order and the part of what is found that a request asks for. */
export function parsePage(request: ListRequest): Pick<ListQuery, 'sort' | 'limit' | 'offset'> {
  return {
    sort: parseSort(request),
    limit: parseCount(request.limit, '/limit', limits.rowsMax),
    offset: parseCount(request.offset, '/offset', limits.offsetMax) ?? 0,
  }
}

/** The dotted names of the fields that a query filters by, sorts by and gives (`all`: the whole record). */
export function usedFields(query: ListQuery): UsedFields {
  const { where, joins, select, sort } = query
  return usedBy({ where, joins, select, sort: sort?.path })
}

/** Every use of a collection, the root's first. */
export function sourcesOfList(query: ListQuery, root: string): readonly SourceUse[] {
  const dataSets = dataSetNames(query.where)
  return [
    { model: root, kind: 'rows', used: usedFields(query), dataSets },
    ...joinedSources(query.joins),
  ]
}

function parseSort(request: ListRequest): Sort | undefined {
  const sortBy = request.sortBy ?? undefined
  const orderBy = request.orderBy ?? undefined
  if (sortBy !== undefined && orderBy !== undefined && sortBy !== orderBy) {
    throw invalid('/orderBy', 'is another name of sortBy; send one')
  }
  const descending = parseDescending(request.sortDirection)
  const name = sortBy ?? orderBy
  if (name === undefined) return undefined
  const pointer = sortBy === undefined ? '/orderBy' : '/sortBy'
  if (typeof name !== 'string') throw invalid(pointer, 'must be the name of a field')
  return Object.freeze({ path: parseFieldPath(name, pointer), descending })
}

function parseDescending(direction: unknown): boolean {
  if (direction === undefined || direction === null) return false
  const name = typeof direction === 'string' ? direction.toLowerCase() : undefined
  if (name === 'ascending' || name === 'asc') return false
  if (name === 'descending' || name === 'desc') return true
  throw invalid('/sortDirection', 'must be ascending or descending (asc, desc)')
}

function parseCount(value: unknown, pointer: string, most: number): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > most) {
    throw invalid(pointer, `must be a whole number from 0 to ${most}`)
  }
  return value
}

/** `include_history`. */
export function parseHistory(value: unknown): boolean {
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw invalid('/include_history', 'must be true or false')
  return value
}
