import type { Tollbase } from '@tollbase/contract/contract'
import { limits } from '@tollbase/contract/limits'
import type { Input } from '@tollbase/contract/route'
import { makeInvalidFault } from '../../base/fault.ts'
import { getQueriedTable, isEncrypted, isQueryable } from '../../model/encrypted-collections.ts'
import { parseRoot } from '../../model/parse-root.ts'
import { findPrimaryColumn, type Readable } from '../../model/readable.ts'
import { refuseUnsharded } from '../../model/shard-keys.ts'
import { isPlain } from '../../projections/index-ddl.ts'
import {
  type AggregateRequest,
  isAggregate,
  parseAggregate,
} from '../../query/aggregate-request.ts'
import { compileQuery } from '../../query/compile/compile-query.ts'
import { compileList } from '../../query/compile-list.ts'
import type { Condition } from '../../query/condition.ts'
import { type JoinedFind, parseJoinedFind } from '../../query/find.ts'
import type { Join } from '../../query/join.ts'
import {
  collectListSources,
  findSortedRange,
  type ListQuery,
  parseHistory,
  parseJoinedList,
} from '../../query/list-query.ts'
import { collectQuerySources } from '../../query/tree/query-sources.ts'
import type { Call } from '../call.ts'
import type { Page, ReadRequest } from './answer-query.ts'
import {
  type AuthorizedSource,
  authorizeSources,
  getColumns,
  makeTableResolver,
  requireSource,
  type SourceParts,
} from './authorize-sources.ts'
import { findVectorSearch } from './find-vector-search.ts'
import { listOpened } from './list-opened.ts'
import { openPaging, type Paging, placeAtCursor, readContinuation } from './paging.ts'
import { findPositionRow, findViewSort, formatLag } from './view-sources.ts'

/** The parts of the service by which a list is prepared. */
export type ListParts = SourceParts | 'database' | 'cursorSecret'

/** Checks the list and authorizes it for the caller. */
export async function prepareListRead(
  call: Call<ListParts>,
  body: Input<Tollbase['listRecords']>['body'],
): Promise<ReadRequest> {
  const { app } = parseRoot(body.root)
  // A caller that may not know of the root is told nothing of the request either.
  const root = await requireSource(call, body.root, app)
  const ask = isAggregate(body) ? prepareGroupsRead : prepareRecordsRead
  return ask(call, body, root)
}

const limitMissing = { pointer: '/limit', problem: 'is needed' }

type ListBody = AggregateRequest & {
  readonly root: string
  readonly max_kb?: number
  readonly cursor?: string | null
}
type ListRoot = Pick<AuthorizedSource, 'tenant' | 'readable' | 'free'>

async function prepareRecordsRead(
  call: Call<ListParts>,
  asked: ListBody,
  root: ListRoot,
): Promise<ReadRequest> {
  const query = parseJoinedList(asked)
  const uses = collectListSources(query, asked.root)
  // Here and below member by member: this is a part of every read, and spreading is slow.
  const requests = uses.map(({ model, kind, used, dataSets }, at) => {
    const isRoot = at === 0
    const opens = isRoot && query.joins.length === 0
    return { model, kind, used, dataSets, history: isRoot && query.history, opens }
  })
  const sources = await authorizeSources(call, requests, { home: root.tenant.application.app_id })
  refuseUnshardedSources(sources, query)
  const hasJoins = query.joins.length > 0
  const { tenant, readable } = root
  const paging = openPaging(call.service, asked, { tenant, readable, sources, query })
  const { from } = paging
  const now = call.service.world.now()
  // Such lists have no shape that an index could serve.
  const isUnlike = hasJoins || isEncrypted(readable) || query.nearest !== undefined
  const continuation =
    from && (await readContinuation(call.service.database, from, { tenant, readable, query }))
  const vectorSearch = await findVectorSearch(call.service.database, tenant, { readable, query })
  return {
    operation: 'list',
    sources,
    limit: query.limit,
    offset: query.offset,
    maxKb: asked.max_kb,
    limitMissing,
    isHeavy: query.nearest !== undefined,
    keepsPlan: from === undefined && keepsPlan(query, readable),
    isRows: true,
    compile: ({ limit, bytesMax, total }) =>
      compileList(
        {
          where: query.where,
          joins: query.joins,
          select: query.select,
          sort: query.sort ?? findViewSort(readable),
          nearest: query.nearest,
          limit,
          offset: query.offset,
          history: query.history,
        },
        {
          schema: tenant.schema,
          table: getQueriedTable(readable),
          caps: { rows: limits.rowsMax, bytes: bytesMax },
          total: total && from === undefined && query.nearest === undefined,
          primaryColumn: findPrimaryColumn(readable),
          dataSets: sources[0]?.dataSets,
          filterColumns: getColumns(tenant, readable).filterColumns,
          resolve: makeTableResolver(sources),
          from: continuation,
          vectorSearch,
          position: findPositionRow(sources),
        },
      ),
    setPosition: from && ((row) => placeAtCursor(row, from)),
    reply: (page) => formatPage(page, query, { paging, now }),
    ...(readable.kind === 'collection' &&
      isEncrypted(readable) &&
      !isQueryable(readable) && {
        runOpened: (runner, size, turn) =>
          listOpened(runner, { tenant, collection: readable, query, sources }, { size, turn }),
      }),
    observed: isUnlike ? undefined : { collection: readable.id, query },
  }
}

async function prepareGroupsRead(
  call: Call<SourceParts>,
  asked: ListBody,
  root: ListRoot,
): Promise<ReadRequest> {
  const { tenant } = root
  const query = parseAggregate(asked, asked.root)
  if (typeof asked.cursor === 'string')
    throw makeInvalidFault('/cursor', 'is about records, not groups')
  if (asked.nearest !== undefined && asked.nearest !== null)
    throw makeInvalidFault('/nearest', 'is about records, not groups')
  if (parseHistory(asked.include_history))
    throw makeInvalidFault(
      '/include_history',
      'is about records; groups are of their latest versions',
    )
  const requests = collectQuerySources(query).map((use) => ({ ...use, history: false }))
  const sources = await authorizeSources(call, requests, { home: root.tenant.application.app_id })
  refuseUnshardedSources(sources, parseJoinedFind(asked.find))
  const now = call.service.world.now()
  return {
    operation: 'list',
    sources,
    limit: query.limit,
    offset: query.offset,
    maxKb: asked.max_kb,
    limitMissing,
    isHeavy: true,
    isRows: false,
    // The number of groups is a part of what was bought.
    compile: ({ limit, bytesMax }) =>
      compileQuery(
        { ...query, limit },
        {
          schema: tenant.schema,
          caps: { rows: limits.rowsMax, bytes: bytesMax },
          resolve: makeTableResolver(sources),
          total: true,
          position: findPositionRow(sources),
        },
      ),
    reply: (page, total) => formatReply(page, { ...query, now }, page.row.total ?? total),
  }
}

/**
 * Returns true for a range of an indexed field in the field's own order, which the index gives whatever its bounds are.
 * To plan such a list costs more than to run it.
 */
function keepsPlan(query: ListQuery, readable: Readable): boolean {
  const field = findSortedRange(query)?.join('.')
  return readable.indexes.some((index) => isPlain(index) && index.fields[0] === field)
}

/** Sources stand in the order of the joins that name them. */
function refuseUnshardedSources(sources: readonly AuthorizedSource[], find: JoinedFind): void {
  const conditions = [find.where, ...listConditions(find.joins)]
  for (const [at, { readable }] of sources.entries()) {
    const where = conditions[at]
    if (where !== undefined) refuseUnsharded(readable, where)
  }
}

function listConditions(joins: readonly Join[]): readonly Condition[] {
  return joins.flatMap((join) => [join.where, ...listConditions(join.joins)])
}

/** Where the caller is not told how many records match, the total tells what was delivered. */
function formatPage(
  page: Page,
  { limit, nearest }: ListQuery,
  { paging, now }: { paging: Paging; now: number },
): string {
  const { total: matches, count } = page.row
  const total = matches === null ? paging.from?.total : Number(matches)
  const next = paging.next(page, total)
  const search = nearest && (page.row.approximate === true ? 'approximate' : 'exact')
  const asked = { limit, offset: paging.given, next, search, now }
  return formatReply(page, asked, total ?? paging.given + count)
}

function formatReply(
  { row, records }: Page,
  query: Pick<ListQuery, 'limit' | 'offset'> & {
    readonly next?: string | undefined
    readonly search?: string | undefined
    readonly now: number
  },
  total: bigint | number,
): string {
  const limit = query.limit ?? row.count
  const number = query.limit ? Math.floor(query.offset / query.limit) + 1 : 1
  const next = query.next === undefined ? '' : `,"next_cursor":"${query.next}"`
  const search = query.search === undefined ? '' : `,"search":"${query.search}"`
  return `{"records":[${records}],"total":${total},"page":${number},"limit":${limit}${search}${next},"as_of":{"block_height":${row.height},"sequence":${row.sequence}}${formatLag(row, query.now)}}`
}
