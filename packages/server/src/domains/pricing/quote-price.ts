import { isInsider } from '../access/access.ts'
import { describableCollection } from '../collections/visibility.ts'
import type { Operation } from '../operation.ts'
import { costOf, readPriceOf, writePriceOf } from '../tenancy/price.ts'

const decimals = 6

/** Whole tokens, for reading; the exact amounts stand beside them. */
const whole = (atomic: bigint) => Number(atomic) / 10 ** decimals

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
  const price =
    isRead && collection ? readPriceOf(catalog, collection) : writePriceOf(catalog, collection)
  const rows = body.rows ?? (Array.isArray(body.data) ? body.data.length : 1)
  const total = costOf(price, { rows, bytes: Math.ceil(body.size_kb * 1024) })
  return {
    type: isRead ? 'read_quote' : 'write_quote_with_indexing',
    base_celestia_cost: 0,
    base_celestia_cost_utia: 0,
    broker_fee: 0,
    broker_fee_utia: 0,
    indexing_costs: {},
    indexing_costs_utia: {},
    base_total_cost: whole(total),
    base_total_cost_utia: Number(total),
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
    },
    request: { ...body },
    monthly_volume_kb: body.monthly_volume_kb ?? 0,
    currency: 'USDC',
    decimals,
  }
}
