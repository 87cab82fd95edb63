import type { Tollbase } from '@tollbase/contract/contract'
import type { Input } from '@tollbase/contract/route'
import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { CollectionState } from '../../model/definitions.ts'
import { fieldCost, moneyDecimals } from '../../model/field-price.ts'
import { grantedPriceOf } from '../../model/grants.ts'
import type { Price } from '../../model/policy.ts'
import { costOf, readPriceOf, type WritePrice, writePriceOf } from '../../model/price.ts'
import { isOpen } from '../../model/read-level.ts'
import { mayWrite } from '../../services/access/access.ts'
import { describableReadable } from '../../services/access/authorize-collections.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Call } from '../../services/call.ts'
import { predefinedQuestion } from '../../services/queries/prepare-predefined-read.ts'
import { quoteQuestion } from '../../services/reading/answer-query.ts'
import { refuseUnsold } from '../../services/reading/authorize-sources.ts'
import { type AnyQuery, anyQuestion } from '../../services/reading/prepare-any-read.ts'
import { sourcesOfView } from '../../services/reading/view-sources.ts'
import type { Operation } from '../operation.ts'

export const quotePrice: Operation<'quotePrice'> = async (call, { body: sent }) => {
  if (typeof sent.query === 'string') return quotePredefined(call, sent, sent.query)
  const body = wholeBody(sent)
  if (body.query !== undefined) return quoteQuery(call, body, body.query)
  const { service, caller } = call
  const tenant = await service.tenancy.tenant(body.app_id)
  const { catalog } = tenant.data
  const isRead = body.operation_type === 'read'
  const named = catalog.byName.get(body.collection)
  // A write makes a collection that is missing; one that the caller may not know of looks the same.
  const mayKnow =
    named !== undefined && (mayWrite(caller, tenant.application) || isOpen(catalog, named))
  const known = mayKnow ? named : undefined
  const collection = isRead ? describableReadable(call, tenant, body.collection) : known
  const price: WritePrice =
    isRead && collection
      ? { ...(await wholePriceOf(call, tenant, collection)), fields: [] }
      : writePriceOf(catalog, collection)
  const rows = body.rows ?? (Array.isArray(body.data) ? body.data.length : 1)
  const fields = fieldCosts(price, body.data)
  const bySize = costOf(price, { rows, bytes: Math.ceil(body.size_kb * 1024) })
  const total = Object.values(fields).reduce((sum, cost) => sum + BigInt(cost), bySize)
  return {
    type: isRead ? 'read_quote' : 'write_quote_with_indexing',
    ...costsText({ base: bySize, total }),
    indexed_fields_count: known?.indexes.length ?? 0,
    rows,
    price: {
      per_access: String(price.perAccess),
      per_row: String(price.perRow),
      per_kb: String(price.perKb),
      ...(price.fields.length > 0 && { fields }),
    },
    ...restOf(body),
  }
}

type Sent = Input<Tollbase['quotePrice']>['body']
type Body = ReturnType<typeof wholeBody>

/** Only of a predefined query the name says all. */
function wholeBody({ query, ...body }: Sent) {
  const { app_id = body.app, operation_type, size_kb, collection } = body
  if (app_id === undefined) throw invalid('/app_id', 'is needed')
  if (operation_type === undefined) throw invalid('/operation_type', 'is needed')
  if (size_kb === undefined) throw invalid('/size_kb', 'is needed')
  if (collection === undefined) throw invalid('/collection', 'is needed')
  const asked = typeof query === 'object' ? { query } : {}
  return { ...body, ...asked, app_id, operation_type, size_kb, collection }
}

/** What the caller would be asked for if he asked the predefined query with these parameters now. */
async function quotePredefined(call: Call, sent: Sent, name: string) {
  const { app_id: app = sent.app } = sent
  if (app === undefined) throw invalid('/app_id', 'is needed')
  const question = await predefinedQuestion(call, app, { ...sent, name })
  const { cap, breakdown } = quoteQuestion(question)
  return {
    type: 'read_quote',
    ...costsText({ base: cap, total: cap }),
    indexed_fields_count: 0,
    rows: question.limit ?? 0,
    price: Object.fromEntries(
      Object.entries(breakdown).map(([part, amount]) => [part, String(amount)]),
    ),
    ...restOf(sent),
  }
}

/** What the caller would be asked for if this very query were asked now. */
async function quoteQuery(call: Call, body: Body, query: AnyQuery) {
  if (body.operation_type !== 'read') throw invalid('/operation_type', 'must be read for a query')
  const question = await anyQuestion(call, query, `${body.app_id}::${body.collection}`)
  const { cap, breakdown } = quoteQuestion(question)
  return {
    type: 'read_quote',
    ...costsText({ base: cap, total: cap }),
    indexed_fields_count: 0,
    rows: question.limit ?? 0,
    price: Object.fromEntries(
      Object.entries(breakdown).map(([part, amount]) => [part, String(amount)]),
    ),
    ...restOf(body),
  }
}

/** Whole tokens, for reading; the exact amounts stand beside them. */
const whole = (atomic: bigint) => Number(atomic) / 10 ** moneyDecimals

/** Amounts under every name that a public client reads. */
function costsText({ base, total }: { readonly base: bigint; readonly total: bigint }) {
  return {
    base_celestia_cost: 0,
    base_celestia_cost_utia: 0,
    broker_fee: 0,
    broker_fee_utia: 0,
    indexing_costs: {},
    indexing_costs_utia: {},
    base_total_cost: whole(base),
    base_total_cost_utia: Number(base),
    total_cost: whole(total),
    total_cost_utia: Number(total),
    total_cost_tia: whole(total),
    total_cost_atomic: String(total),
  }
}

function restOf(body: Pick<Sent, 'monthly_volume_kb'>) {
  return {
    request: { ...body },
    monthly_volume_kb: body.monthly_volume_kb ?? 0,
    currency: 'USDC',
    decimals: moneyDecimals,
  }
}

/** Of a view with what the sources of other applications behind it add for each access. */
async function wholePriceOf(
  call: Call,
  tenant: Tenant,
  collection: CollectionState,
): Promise<Price> {
  refuseUnsold(tenant, collection)
  const price = readPriceOf(tenant.data.catalog, collection)
  const behind = await sourcesOfView(call, tenant, { collection, history: false })
  const derived = behind.reduce((sum, { tenant: owner, collection: source, grantee, free }) => {
    return sum + ((!free && grantedPriceOf(owner.data.catalog, source, grantee)) || 0n)
  }, 0n)
  return { ...price, perAccess: price.perAccess + derived }
}

/** Atomic units by field, for the records of `data`: one of them, or a list. */
function fieldCosts({ fields }: WritePrice, data: unknown): Record<string, string> {
  if (fields.length === 0) return {}
  if (data === undefined || data === null)
    throw invalid('/data', `is needed: a record costs the value of its ${fields[0]?.field}`)
  const records = (Array.isArray(data) ? data : [data]).map((record: unknown, at) => ({
    text: JSON.stringify(record),
    deleted: isRecord(record) && record.deleted === true,
    pointer: Array.isArray(data) ? `/data/${at}` : '/data',
  }))
  return Object.fromEntries(fields.map(({ field }) => [field, String(fieldCost(records, field))]))
}
