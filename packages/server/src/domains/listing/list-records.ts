import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import { sql } from '../../database/sql.ts'
import { HttpReply } from '../../http/reply.ts'
import { compileList, type ListRow } from '../../query/compile-list.ts'
import { type ListQuery, parseList, usedFields } from '../../query/list-query.ts'
import type { Call } from '../call.ts'
import { refuseUnsharded } from '../collections/shard-keys.ts'
import { readableCollection, refuseUnoffered } from '../collections/visibility.ts'
import type { Operation } from '../operation.ts'
import type { Catalog } from '../tenancy/catalog.ts'
import type { CollectionState } from '../tenancy/definitions.ts'
import type { Price } from '../tenancy/policy.ts'
import { costOf, isFree, readPriceOf } from '../tenancy/price.ts'
import { parseRoot } from '../tenancy/root.ts'
import type { Tenant } from '../tenancy/tenancy.ts'

/** What a read by the KB buys at most when the request does not say. */
const maxKbDefault = 64

export const listRecords: Operation<'listRecords'> = async (call, { body }) => {
  const { app, name } = parseRoot(body.root)
  const tenant = await call.service.tenancy.tenant(app)
  const { collection, free } = readableCollection(call, tenant, name)
  const query = parseList(body)
  const price = readPriceOf(tenant.data.catalog, collection)
  if (!free) refuseUnoffered(collection, usedFields(query), query.history)
  refuseUnsharded(collection, query.where)
  if (free || isFree(price)) {
    const page = await run(call, {
      tenant,
      collection,
      query,
      total: true,
      bytesMax: limits.resultBytesMax,
    })
    if (page.records === null) throw tooLarge(page)
    return new HttpReply(replyText(page, query, page.total ?? page.count))
  }
  return sell(call, { tenant, collection, query, price, maxKb: body.max_kb })
}

type Read = { tenant: Tenant; collection: CollectionState; query: ListQuery }

/** Sells a page. The price is a function of the request: its limit, and what it says of bytes. */
function sell(
  call: Call,
  sale: Read & { price: Price; maxKb: number | undefined },
): Promise<HttpReply> {
  const { tenant, collection, query, price } = sale
  const priceUnder = (catalog: Catalog) =>
    readPriceOf(catalog, catalog.byId.get(collection.id) ?? collection)
  if (price.perRow > 0n && query.limit === undefined) {
    throw invalid('/limit', 'is needed, because every row of this collection has a price')
  }
  // What is not priced by the KB is bounded by the service alone; it may have been when the quote was made.
  const mostUnder = ({ perKb }: Price) => {
    const isByKb = perKb > 0n || sale.maxKb !== undefined
    const bytes = isByKb ? (sale.maxKb ?? maxKbDefault) * 1024 : limits.paidResultBytesMax
    return { rows: query.limit ?? 0, bytes }
  }
  const most = mostUnder(price)
  return call.service.payments.sell(call.facts, {
    tenant,
    operation: 'list',
    description: `Records of ${tenant.application.app_id}::${collection.name}`,
    capUnder: (catalog) => {
      const then = priceUnder(catalog)
      if (then.perRow > 0n && query.limit === undefined) return undefined
      return costOf(then, mostUnder(then))
    },
    breakdown: {
      per_access: Number(price.perAccess),
      per_row: Number(price.perRow) * most.rows,
      per_kb: Number(costOf({ perAccess: 0n, perRow: 0n, perKb: price.perKb }, most)),
    },
    deliver: async (catalog) => {
      const page = await largestThatFits(call, sale, mostUnder(priceUnder(catalog)).bytes)
      // A count of matches is an aggregate, which is not what was sold: the total tells only what was delivered.
      const total = query.offset + page.count
      const text = Buffer.from(replyText(page, query, total))
      const isEmpty = page.count === 0
      const size = { rows: page.count, bytes: isEmpty ? 0 : Number(page.bytes) }
      const charge =
        isEmpty && collection.policy.emptyAnswerFree ? 0n : costOf(priceUnder(catalog), size)
      return {
        status: 200,
        body: text,
        charge,
        rows: page.count,
        asOf: { block_height: Number(page.height), sequence: page.sequence },
      }
    },
  })
}

type Page = Omit<ListRow, 'records'> & { records: string; truncated: boolean }

/** The page, or, where it has more bytes than were bought, the longest beginning of it by halves. */
async function largestThatFits(call: Call, read: Read, bytesMax: number): Promise<Page> {
  let query = read.query
  let truncated = false
  for (;;) {
    const page = await run(call, { ...read, query, total: false, bytesMax })
    if (page.records !== null) return { ...page, records: page.records, truncated }
    const limit = Math.floor(Math.min(query.limit ?? page.count, page.count) / 2)
    if (limit === 0) {
      throw new Fault('RESULT_TOO_LARGE', {
        message: `The first record alone is larger than the ${Math.floor(bytesMax / 1024)} KB that were bought; ask with a larger max_kb`,
      })
    }
    query = { ...query, limit }
    truncated = true
  }
}

async function run(
  call: Call,
  read: Read & { total: boolean; bytesMax: number },
): Promise<ListRow> {
  const statement = compileList(read.query, {
    schema: read.tenant.schema,
    table: read.collection.table,
    caps: { rows: limits.rowsMax, bytes: read.bytesMax },
    total: read.total,
    primaryColumn: read.collection.primary_column,
  })
  const { world, queries } = call.service
  const startedMs = world.now()
  try {
    const [row] = await call.service.database.query<ListRow>(
      sql.compiled(statement.text, statement.values),
    )
    if (row === undefined) throw new Error('the watermark is missing')
    const took = { ms: world.now() - startedMs, rows: row.count }
    queries.note(read.collection.id, read.query, took)
    return row
  } catch (error) {
    throw timedOut(error) ? new Fault('QUERY_TIMEOUT', { cause: error }) : error
  }
}

/** SQLSTATE query_canceled: the statement's time ran out. */
function timedOut(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '57014'
}

function replyText(
  page: Omit<ListRow, 'records'> & { records: string | null; truncated?: boolean },
  query: ListQuery,
  total: bigint | number,
): string {
  const limit = query.limit ?? page.count
  const number = query.limit ? Math.floor(query.offset / query.limit) + 1 : 1
  const cut = page.truncated === true ? ',"truncated":true' : ''
  return `{"records":[${page.records ?? ''}],"total":${total},"page":${number},"limit":${limit}${cut},"as_of":{"block_height":${page.height},"sequence":${page.sequence}}}`
}

function tooLarge(page: ListRow): Fault {
  return new Fault('RESULT_TOO_LARGE', {
    message: `The answer would have ${page.count} records of ${page.bytes} bytes or more, past ${limits.rowsMax} records or ${limits.resultBytesMax} bytes; give a limit`,
    details: { records_max: limits.rowsMax, bytes_max: limits.resultBytesMax },
  })
}
