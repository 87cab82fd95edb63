import type { Tollbase } from '@tollbase/contract/contract'
import { limits } from '@tollbase/contract/limits'
import type { Input } from '@tollbase/contract/route'
import { invalid } from '../../base/fault.ts'
import { parseRoot } from '../../model/parse-root.ts'
import { refuseUnsharded } from '../../model/shard-keys.ts'
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
  type ListQuery,
  parseHistory,
  parseJoinedList,
  sourcesOfList,
} from '../../query/list-query.ts'
import { sourcesOfQuery } from '../../query/tree/query-sources.ts'
import type { Call } from '../call.ts'
import type { Page, Question } from './answer-query.ts'
import { type JudgedSource, judgeSources, namedSource, tablesOf } from './authorize-sources.ts'
import { atCursor, continuationOf, openPaging, type Paging } from './paging.ts'
import { lagText, positionOf, sortOfView } from './view-sources.ts'

/** The list, checked and judged for the caller. */
export async function listQuestion(
  call: Call,
  body: Input<Tollbase['listRecords']>['body'],
): Promise<Question> {
  const { app } = parseRoot(body.root)
  // Who may not know of the root is told nothing of his request either.
  const root = await namedSource(call, body.root, app)
  const ask = isAggregate(body) ? groupsOf : recordsOf
  return ask(call, body, root)
}

const limitMissing = { pointer: '/limit', problem: 'is needed' }

type Asked = AggregateRequest & {
  readonly root: string
  readonly max_kb?: number
  readonly cursor?: string | null
}
type Root = Pick<JudgedSource, 'tenant' | 'collection' | 'free'>

async function recordsOf(call: Call, asked: Asked, root: Root): Promise<Question> {
  const query = parseJoinedList(asked)
  const uses = sourcesOfList(query, asked.root)
  // Here and below member by member: this is a part of every read, and spreading is slow.
  const requests = uses.map(({ model, kind, used, dataSets }, at) => {
    return { model, kind, used, dataSets, history: at === 0 && query.history }
  })
  const sources = await judgeSources(call, requests, root.tenant.application.app_id)
  refuseUnshardedSources(sources, query)
  const hasJoins = query.joins.length > 0
  const { tenant, collection } = root
  const paging = openPaging(call.service, asked, { tenant, collection, sources, query })
  const { from } = paging
  const now = call.service.world.now()
  const continuation =
    from && (await continuationOf(call.service, from, { tenant, collection, query }))
  return {
    operation: 'list',
    sources,
    limit: query.limit,
    offset: query.offset,
    maxKb: asked.max_kb,
    limitMissing,
    isHeavy: hasJoins,
    isRows: true,
    compile: ({ limit, bytesMax, total }) =>
      compileList(
        {
          where: query.where,
          joins: query.joins,
          select: query.select,
          sort: query.sort ?? sortOfView(tenant, collection),
          limit,
          offset: query.offset,
          history: query.history,
        },
        {
          schema: tenant.schema,
          table: collection.table,
          caps: { rows: limits.rowsMax, bytes: bytesMax },
          total: total && from === undefined,
          primaryColumn: collection.primary_column,
          dataSets: sources[0]?.dataSets,
          resolve: tablesOf(sources),
          from: continuation,
          position: positionOf(sources),
        },
      ),
    place: from && ((row) => atCursor(row, from)),
    reply: (page) => pageText(page, query, { paging, now }),
    note: hasJoins ? undefined : (took) => call.service.queries.note(collection.id, query, took),
  }
}

async function groupsOf(call: Call, asked: Asked, root: Root): Promise<Question> {
  const { tenant } = root
  const query = parseAggregate(asked, asked.root)
  if (typeof asked.cursor === 'string') throw invalid('/cursor', 'is about records, not groups')
  if (parseHistory(asked.include_history))
    throw invalid('/include_history', 'is about records; groups are of their latest versions')
  const requests = sourcesOfQuery(query).map((use) => ({ ...use, history: false }))
  const sources = await judgeSources(call, requests, root.tenant.application.app_id)
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
          resolve: tablesOf(sources),
          total: true,
          position: positionOf(sources),
        },
      ),
    reply: (page, total) => replyText(page, { ...query, now }, page.row.total ?? total),
  }
}

/** Sources stand in the order of the joins that name them. */
function refuseUnshardedSources(sources: readonly JudgedSource[], find: JoinedFind): void {
  const conditions = [find.where, ...conditionsOf(find.joins)]
  for (const [at, { collection }] of sources.entries()) {
    const where = conditions[at]
    if (where !== undefined) refuseUnsharded(collection, where)
  }
}

function conditionsOf(joins: readonly Join[]): readonly Condition[] {
  return joins.flatMap((join) => [join.where, ...conditionsOf(join.joins)])
}

/** Where the caller is not told how many records match, the total tells what was delivered. */
function pageText(
  page: Page,
  { limit }: ListQuery,
  { paging, now }: { paging: Paging; now: number },
): string {
  const { total: matches, count } = page.row
  const total = matches === null ? paging.from?.total : Number(matches)
  const next = paging.next(page, total)
  const asked = { limit, offset: paging.given, next, now }
  return replyText(page, asked, total ?? paging.given + count)
}

function replyText(
  { row, records }: Page,
  query: Pick<ListQuery, 'limit' | 'offset'> & {
    readonly next?: string | undefined
    readonly now: number
  },
  total: bigint | number,
): string {
  const limit = query.limit ?? row.count
  const number = query.limit ? Math.floor(query.offset / query.limit) + 1 : 1
  const next = query.next === undefined ? '' : `,"next_cursor":"${query.next}"`
  return `{"records":[${records}],"total":${total},"page":${number},"limit":${limit}${next},"as_of":{"block_height":${row.height},"sequence":${row.sequence}}${lagText(row, query.now)}}`
}
