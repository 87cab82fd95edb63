import { limits } from '@tollbase/contract/limits'
import { assert } from '../../base/assert.ts'
import { Fault, invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { sql } from '../../database/sql.ts'
import type { CollectionState } from '../../model/definitions.ts'
import type { ListRow } from '../../query/compile-list.ts'
import { type Continuation, compilePosition, type Position } from '../../query/continuation.ts'
import type { ListQuery, ListRequest } from '../../query/list-query.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { Service } from '../call.ts'
import type { Page } from './answer-query.ts'
import type { JudgedSource } from './authorize-sources.ts'
import { type Cursor, issueCursor, readCursor } from './cursor.ts'

/** A list that is read page by page. */
export type Paging = {
  /** Where this page begins; undefined where it is the first. */
  readonly from: Cursor | undefined
  /** Rows before this page. */
  readonly given: number
  /** The cursor of the rest, where there is a page that can have one; `total` where the caller is told. */
  readonly next: (page: Page, total: number | undefined) => string | undefined
}

type Listed = {
  readonly tenant: Tenant
  readonly collection: CollectionState
  readonly query: ListQuery
  /** Of the list, the root's first. */
  readonly sources: readonly JudgedSource[]
}

/** Judges the cursor of a request: 400 where it is not of this list or has expired. */
export function openPaging(
  service: Service,
  request: ListRequest & { readonly cursor?: string | null | undefined },
  listed: Listed,
): Paging {
  const { world, cursorSecret } = service
  const { query, tenant, sources } = listed
  // A cursor knows one moment of one chain.
  const { number } = tenant.application
  // A view keeps no rows of before.
  const isOneChain = sources.every(
    ({ tenant: { application }, collection: { view } }) =>
      application.number === number && view === undefined,
  )
  // Most answers have no cursor, and the name of a list takes some work.
  const scope = () => scopeOf(request, listed)
  const from = typeof request.cursor === 'string' ? read(request.cursor) : undefined
  const given = from?.given ?? query.offset
  return {
    from,
    given,
    next: ({ row }, total) => {
      const end = given + row.count
      const isFull = query.limit !== undefined && row.count === query.limit
      const isLast = total === undefined ? !isFull : end >= total
      if (row.last === null || !isOneChain) return undefined
      if (!isFull || isLast) return undefined
      const start = from ?? {
        expiresAt: Math.floor(world.now() / 1000) + limits.cursorLifetimeSeconds,
        height: Number(row.height),
        sequence: row.sequence,
        size: Number(row.size),
      }
      const cursor = { ...start, last: Number(row.last), given: end, total }
      return issueCursor(cursorSecret, cursor, scope())
    },
  }

  function read(text: string): Cursor {
    if (query.offset > 0) throw invalid('/offset', 'has no place beside a cursor')
    if (!isOneChain)
      throw invalid('/cursor', 'has no place beside views or records of another application')
    const cursor = readCursor(cursorSecret, text, scope())
    if (cursor === undefined)
      throw invalid('/cursor', 'was not given for this list: repeat the request, with its cursor')
    if (cursor.expiresAt <= world.now() / 1000)
      throw invalid('/cursor', 'has expired: begin again without one')
    return cursor
  }
}

/** The rest of the list, for the statement that reads it. */
export async function continuationOf(
  { database }: Pick<Service, 'database'>,
  from: Cursor,
  { tenant, collection, query }: Pick<Listed, 'tenant' | 'collection' | 'query'>,
): Promise<Continuation> {
  const leaf = BigInt(from.last)
  const size = BigInt(from.size)
  if (query.sort === undefined) return { size, after: { leaf, key: null, tie: null } }
  const { text, values } = compilePosition(query.sort, {
    schema: tenant.schema,
    table: collection.table,
    leaf,
  })
  const [row] = await database.query<Pick<Position, 'key' | 'tie'>>(sql.compiled(text, values))
  if (row === undefined) throw behind()
  return { size, after: { leaf, ...row } }
}

/** A page of the rest, at the position of the first page. */
export function atCursor(page: ListRow, from: Cursor): ListRow {
  if (page.size < BigInt(from.size)) throw behind()
  const { height, sequence, size } = from
  return { ...page, height: BigInt(height), sequence, size: BigInt(size) }
}

/** After a crash the tables may be behind the log for a moment, and know less than when the cursor was given. */
function behind(): Fault {
  return new Fault('UNAVAILABLE', { retryAfterSeconds: 1 })
}

/**
 * Names a list: the collections, who reads, and what is asked, but not how many rows. A field that becomes unique
 * changes which of the versions of old are live, and a data set has no versions of old, so after a change of either a
 * cursor of before counts no more.
 */
function scopeOf(request: ListRequest, { tenant, sources, query }: Listed): string {
  const read = sources.map(({ collection, free, dataSets }) => {
    const unique = collection.indexes.filter((index) => index.unique).map((index) => index.id)
    return [collection.id, unique, free, [...dataSets.values()].map(({ version }) => version)]
  })
  const asked = [request.find ?? null, request.select ?? null, query.sort ?? null, query.history]
  const text = JSON.stringify([tenant.application.number, read, asked], sortedMembers)
  assert(text !== undefined, 'a list has a text')
  return text
}

/** A replacer of JSON.stringify: members in one order, as clients differ in it. */
function sortedMembers(_name: string, value: unknown): unknown {
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
