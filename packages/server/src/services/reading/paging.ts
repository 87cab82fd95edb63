import { limits } from '@tollbase/contract/limits'
import { assert } from '../../base/assert.ts'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { isEncrypted } from '../../model/encrypted-collections.ts'
import type { Readable } from '../../model/readable.ts'
import type { ListRow } from '../../query/compile-list.ts'
import { type Continuation, compileLastRow, type LastRow } from '../../query/continuation.ts'
import type { ListQuery, ListRequest } from '../../query/list-query.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'
import type { Page } from './answer-query.ts'
import type { AuthorizedSource } from './authorize-sources.ts'
import { type Cursor, decodeCursor, encodeCursor } from './cursor.ts'

/** A list that is read page by page. */
export type Paging = {
  /** Where this page begins; undefined where it is the first. */
  readonly from: Cursor | undefined
  /** Rows before this page. */
  readonly given: number
  /** The cursor of the rest, where there is a page that can have one; `total` where the caller is told. */
  readonly next: (page: Page, total: number | undefined) => string | undefined
}

type PagedList = {
  readonly tenant: Tenant
  readonly readable: Readable
  readonly query: ListQuery
  /** The sources of the list, the root's first. */
  readonly sources: readonly AuthorizedSource[]
}

/** Checks the cursor of a request: 400 where it is not of this list or has expired. */
export function openPaging(
  service: Uses<'world' | 'cursorSecret'>,
  request: ListRequest & { readonly cursor?: string | null | undefined },
  listed: PagedList,
): Paging {
  const { world, cursorSecret } = service
  const { query, tenant, sources } = listed
  // A cursor knows one moment of one chain.
  const { number } = tenant.application
  // A view keeps no old rows.
  // Pages of opened records would need the versions of that moment opened again.
  const isOneChain = sources.every(
    ({ tenant: { application }, readable }) =>
      application.number === number && readable.kind === 'collection' && !isEncrypted(readable),
  )
  // Most answers have no cursor, and the name of a list takes some work.
  const scope = () => formatScope(request, listed)
  const from = typeof request.cursor === 'string' ? read(request.cursor) : undefined
  const given = from?.given ?? query.offset
  return {
    from,
    given,
    next: ({ row }, total) => {
      const end = given + row.count
      const isFull = query.limit !== undefined && row.count === query.limit
      const isLast = total === undefined ? !isFull : end >= total
      if (row.last === null || !isOneChain || query.nearest !== undefined) return undefined
      if (!isFull || isLast) return undefined
      const start = from ?? {
        expiresAt: Math.floor(world.now() / 1000) + limits.cursorLifetimeSeconds,
        height: Number(row.height),
        sequence: row.sequence,
        size: Number(row.size),
      }
      const cursor = { ...start, last: Number(row.last), given: end, total }
      return encodeCursor(cursorSecret, cursor, scope())
    },
  }

  function read(text: string): Cursor {
    if (query.nearest !== undefined)
      throw makeInvalidFault('/cursor', 'has no place beside nearest; use offset')
    if (query.offset > 0) throw makeInvalidFault('/offset', 'has no place beside a cursor')
    if (!isOneChain)
      throw makeInvalidFault(
        '/cursor',
        'has no place beside views, encrypted records or records of another application',
      )
    const cursor = decodeCursor(cursorSecret, text, scope())
    if (cursor === undefined)
      throw makeInvalidFault(
        '/cursor',
        'belongs to another list: repeat the same request with its own cursor',
      )
    if (cursor.expiresAt <= world.now() / 1000)
      throw makeInvalidFault('/cursor', 'has expired: begin again without one')
    return cursor
  }
}

/** Reads the point from which the rest of the list is read. */
export async function readContinuation(
  database: Database,
  from: Cursor,
  { tenant, readable, query }: Pick<PagedList, 'tenant' | 'readable' | 'query'>,
): Promise<Continuation> {
  const leaf = BigInt(from.last)
  const size = BigInt(from.size)
  if (query.sort === undefined) return { size, after: { leaf, key: null, tie: null } }
  const { text, values } = compileLastRow(query.sort, {
    schema: tenant.schema,
    table: readable.table,
    leaf,
  })
  const [row] = await database.query<Pick<LastRow, 'key' | 'tie'>>(sql.compiled(text, values))
  if (row === undefined) throw makeBehindFault()
  return { size, after: { leaf, ...row } }
}

/** Gives a later page the position of the first page. */
export function placeAtCursor(page: ListRow, from: Cursor): ListRow {
  if (page.size < BigInt(from.size)) throw makeBehindFault()
  const { height, sequence, size } = from
  return { ...page, height: BigInt(height), sequence, size: BigInt(size) }
}

/** After a crash the tables may be behind the log for a moment, and know less than when the cursor was given. */
function makeBehindFault(): Fault {
  return new Fault('UNAVAILABLE', { retryAfterSeconds: 1 })
}

/**
 * Names a list by its collections, its reader and its query, but not by its number of rows. A field that becomes
 * unique changes which old versions are live, and a data set keeps no old versions, so a change of either makes
 * earlier cursors invalid.
 */
function formatScope(request: ListRequest, { tenant, sources, query }: PagedList): string {
  const read = sources.map(({ readable, free, dataSets }) => {
    const unique = readable.indexes.filter((index) => index.unique).map((index) => index.id)
    return [readable.id, unique, free, [...dataSets.values()].map(({ version }) => version)]
  })
  const asked = [request.find ?? null, request.select ?? null, query.sort ?? null, query.history]
  const text = JSON.stringify([tenant.application.number, read, asked], sortMembers)
  assert(text !== undefined, 'a list has a text')
  return text
}

/** A replacer for JSON.stringify that sorts members, as clients differ in their order. */
function sortMembers(_name: string, value: unknown): unknown {
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
