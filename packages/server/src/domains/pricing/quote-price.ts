import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { isInsider } from '../access/access.ts'
import { describableCollection } from '../collections/visibility.ts'
import type { Operation } from '../operation.ts'
import { fieldCost, moneyDecimals } from '../tenancy/field-price.ts'
import { costOf, readPriceOf, type WritePrice, writePriceOf } from '../tenancy/price.ts'

/** Whole tokens, for reading; the exact amounts stand beside them. */
const whole = (atomic: bigint) => Number(atomic) / 10 ** moneyDecimals

export const quotePrice: Operation<'quotePrice'> = async (call, { body }) => {
  const { service, caller } = call
  const tenant = await service.tenancy.tenant(body.app_id)
  const { catalog } = tenant.data
  const isRead = body.operation_type === 'read'
  const named = catalog.byName.get(body.collection)
  // A write makes a collection that is missing; one that the caller may not know of looks the same.
  const known =
    named?.policy.read === 'public' || isInsider(caller, tenant.application) ? named : undefined
  const collection = isRead ? describableCollection(call, tenant, body.collection) : known
  const price: WritePrice =
    isRead && collection
      ? { ...readPriceOf(catalog, collection), fields: [] }
      : writePriceOf(catalog, collection)
  const rows = body.rows ?? (Array.isArray(body.data) ? body.data.length : 1)
  const fields = fieldCosts(price, body.data)
  const bySize = costOf(price, { rows, bytes: Math.ceil(body.size_kb * 1024) })
  const total = Object.values(fields).reduce((sum, cost) => sum + BigInt(cost), bySize)
  return {
    type: isRead ? 'read_quote' : 'write_quote_with_indexing',
    base_celestia_cost: 0,
    base_celestia_cost_utia: 0,
    broker_fee: 0,
    broker_fee_utia: 0,
    indexing_costs: {},
    indexing_costs_utia: {},
    base_total_cost: whole(bySize),
    base_total_cost_utia: Number(bySize),
    total_cost: whole(total),
    total_cost_utia: Number(total),
    total_cost_tia: whole(total),
    total_cost_atomic: String(total),
    indexed_fields_count: known?.indexes.length ?? 0,
    rows,
    price: {
      per_access: String(price.perAccess),
      per_row: String(price.perRow),
      per_kb: String(price.perKb),
      ...(price.fields.length > 0 && { fields }),
    },
    request: { ...body },
    monthly_volume_kb: body.monthly_volume_kb ?? 0,
    currency: 'USDC',
    decimals: moneyDecimals,
  }
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
