import type { Tollbase } from '@tollbase/contract/contract'
import type { Input } from '@tollbase/contract/route'
import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { computeUnboundedCost, limitCost } from '../../model/compute-cost.ts'
import { computeFieldCost, moneyDecimals } from '../../model/field-price.ts'
import { getReadPrice, getWritePrice, type WritePrice } from '../../model/find-price.ts'
import { findGrantedPrice } from '../../model/grants.ts'
import type { Price } from '../../model/policy.ts'
import { isOpen } from '../../model/read-level.ts'
import { canWrite } from '../../services/access/access.ts'
import { requireDescribableSource } from '../../services/access/find-sources.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'
import { toUsd } from '../../services/payments/currency.ts'
import { preparePredefinedRead } from '../../services/queries/prepare-predefined-read.ts'
import { findQuotedSize, quoteRead, type ReadRequest } from '../../services/reading/answer-query.ts'
import { refuseUnsold, type SourceParts } from '../../services/reading/authorize-sources.ts'
import { type AnyQuery, prepareAnyRead } from '../../services/reading/prepare-any-read.ts'
import type { ListParts } from '../../services/reading/prepare-list-read.ts'
import { listViewSources } from '../../services/reading/view-sources.ts'
import type { Operation } from '../operation.ts'

type MeasureParts = 'world' | 'queryRunner' | 'queryStatistics'

export const quotePrice: Operation<
  'quotePrice',
  ListParts | MeasureParts | 'queryPlans' | 'queryRates'
> = async (call, { body: sent }) => {
  if (typeof sent.query === 'string') return quotePredefined(call, sent, sent.query)
  const body = requireWholeBody(sent)
  if (body.query !== undefined) return quoteQuery(call, body, body.query)
  const { service, caller } = call
  const tenant = await service.tenants.load(body.app_id)
  const { catalog } = tenant.data
  const isRead = body.operation_type === 'read'
  const named = catalog.byName.get(body.collection)
  // A write makes a collection that is missing; one that the caller may not know of looks the same.
  const mayKnow =
    named !== undefined && (canWrite(caller, tenant.application) || isOpen(catalog, named))
  const known = mayKnow ? named : undefined
  const read = isRead ? await computeReadPrice(call, tenant, body.collection) : undefined
  const price: WritePrice =
    read === undefined ? getWritePrice(catalog, known) : { ...read.price, fields: [] }
  const behind = read?.behind ?? 0n
  const rows = body.rows ?? (Array.isArray(body.data) ? body.data.length : 1)
  const fields = computeFieldCosts(price, body.data)
  const bySize = computeUnboundedCost(price, { rows, bytes: Math.ceil(body.size_kb * 1024) })
  const isShared = (field: string) =>
    price.fields.some((one) => one.field === field && one.share !== undefined)
  const sumFields = (isCounted: (field: string) => boolean) =>
    Object.entries(fields).reduce(
      (sum, [field, cost]) => sum + (isCounted(field) ? BigInt(cost) : 0n),
      0n,
    )
  // Bounds are for what the application itself gets.
  const own = limitCost(price, bySize + sumFields((field) => !isShared(field)))
  const total = own + sumFields(isShared) + behind
  return {
    type: isRead ? 'read_quote' : 'write_quote_with_indexing',
    ...describeCosts({ base: bySize + behind, total }),
    indexed_fields_count: known?.indexes.length ?? 0,
    rows,
    price: {
      per_access: String(price.perAccess + behind),
      per_row: String(price.perRow),
      per_kb: String(price.perKb),
      ...(price.minimum !== undefined && { minimum: String(price.minimum) }),
      ...(price.maximum !== undefined && { maximum: String(price.maximum) }),
      ...(price.fields.length > 0 && { fields }),
    },
    ...describeRequest(body),
  }
}

type QuoteBody = Input<Tollbase['quotePrice']>['body']
type WholeQuoteBody = ReturnType<typeof requireWholeBody>

/** Requires the members that only the name of a predefined query can replace. */
function requireWholeBody({ query, ...body }: QuoteBody) {
  const { app_id = body.app, operation_type, size_kb, collection } = body
  if (app_id === undefined) throw makeInvalidFault('/app_id', 'is needed')
  if (operation_type === undefined) throw makeInvalidFault('/operation_type', 'is needed')
  if (size_kb === undefined) throw makeInvalidFault('/size_kb', 'is needed')
  if (collection === undefined) throw makeInvalidFault('/collection', 'is needed')
  const asked = typeof query === 'object' ? { query } : {}
  return { ...body, ...asked, app_id, operation_type, size_kb, collection }
}

/** Quotes a run of the predefined query with these parameters, for the caller and at this moment. */
async function quotePredefined(
  call: Call<SourceParts | MeasureParts | 'queryPlans' | 'queryRates'>,
  sent: QuoteBody,
  name: string,
) {
  const { app_id: app = sent.app } = sent
  if (app === undefined) throw makeInvalidFault('/app_id', 'is needed')
  const request = await preparePredefinedRead(call, app, { ...sent, name })
  return { ...(await describeReadQuote(call, request)), ...describeRequest(sent) }
}

/** Quotes this very query for the caller, at this moment. */
async function quoteQuery(
  call: Call<ListParts | MeasureParts>,
  body: WholeQuoteBody,
  query: AnyQuery,
) {
  if (body.operation_type !== 'read')
    throw makeInvalidFault('/operation_type', 'must be read for a query')
  const request = await prepareAnyRead(call, query, `${body.app_id}::${body.collection}`)
  return { ...(await describeReadQuote(call, request)), ...describeRequest(body) }
}

/** Whole tokens, for reading; the exact amounts stand beside them. */
const toWholeTokens = (atomic: bigint) => Number(atomic) / 10 ** moneyDecimals

/** Amounts under every name that a public client reads. */
function describeCosts({ base, total }: { readonly base: bigint; readonly total: bigint }) {
  return {
    base_celestia_cost: 0,
    base_celestia_cost_utia: 0,
    broker_fee: 0,
    broker_fee_utia: 0,
    indexing_costs: {},
    indexing_costs_utia: {},
    base_total_cost: toWholeTokens(base),
    base_total_cost_utia: Number(base),
    total_cost: toWholeTokens(total),
    total_cost_utia: Number(total),
    total_cost_tia: toWholeTokens(total),
    total_cost_atomic: String(total),
    usd: toUsd({ total_cost: String(total) }),
  }
}

function describeRequest(body: Pick<QuoteBody, 'monthly_volume_kb'>) {
  return {
    request: { ...body },
    monthly_volume_kb: body.monthly_volume_kb ?? 0,
    currency: 'USDC',
    decimals: moneyDecimals,
  }
}

/** Reads the price, and what the sources of other applications behind a view charge beside it for each access. */
async function computeReadPrice(
  call: Call<'world' | 'tenants'>,
  tenant: Tenant,
  name: string,
): Promise<{ readonly price: Price; readonly behind: bigint }> {
  const readable = requireDescribableSource(call.caller, tenant, name)
  refuseUnsold(tenant, readable)
  const price = getReadPrice(tenant.data.catalog, readable)
  const sources = await listViewSources(call, tenant, { readable, history: false })
  const behind = sources.reduce((sum, { tenant: owner, readable: source, grantee, free }) => {
    return sum + ((!free && findGrantedPrice(owner.data.catalog, source, grantee)) || 0n)
  }, 0n)
  return { price, behind }
}

/** Atomic units by field, for the records of `data`: one of them, or a list. */
function computeFieldCosts({ fields }: WritePrice, data: unknown): Record<string, string> {
  if (fields.length === 0) return {}
  if (data === undefined || data === null)
    throw makeInvalidFault(
      '/data',
      `is needed, because the price of a record is the value of its ${fields[0]?.field}`,
    )
  const records = (Array.isArray(data) ? data : [data]).map((record: unknown, at) => ({
    text: JSON.stringify(record),
    deleted: isRecord(record) && record.deleted === true,
    pointer: Array.isArray(data) ? `/data/${at}` : '/data',
  }))
  return Object.fromEntries(
    fields.map(({ field }) => [field, String(computeFieldCost(records, field))]),
  )
}

async function describeReadQuote(call: Call<MeasureParts>, request: ReadRequest) {
  const size = await findQuotedSize(call, request)
  const { cap, breakdown } = quoteRead(request, size)
  return {
    type: 'read_quote' as const,
    ...describeCosts({ base: cap, total: cap }),
    indexed_fields_count: 0,
    rows: size?.rows ?? request.limit ?? 0,
    ...(size && { bytes: size.bytes }),
    price: Object.fromEntries(
      Object.entries(breakdown).map(([part, amount]) => [part, String(amount)]),
    ),
  }
}
