import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../base/fault.ts'
import { readVersionBytes } from '../../projections/expiry.ts'
import { requireCollection } from '../../services/access/find-sources.ts'
import { currency } from '../../services/payments/currency.ts'
import { makeFreeTurn } from '../../services/reading/query-turn.ts'
import { makeReader } from '../../services/reading/run-query.ts'
import { chooseTier } from '../../services/retention/describe-retention.ts'
import { findFirstKept } from '../../services/retention/retention-cutoff.ts'
import type { Operation } from '../operation.ts'

const gigabyte = 2n ** 30n

export const getRetentionCost: Operation<
  'getRetentionCost',
  'world' | 'database' | 'tenants' | 'retentionPrice' | 'queryRunner'
> = async (call, { params, query }) => {
  const { service } = call
  const { world, database, retentionPrice: price } = service
  const tenant = await service.tenants.load(params.app)
  const { name, table, retention } = requireCollection(tenant, params.collection)
  const days = parseDays(query.retention_days, retention?.days ?? null)
  const now = world.now()
  // Older is a smaller leaf: those between the end of the retention and the end of the free days.
  const from = days === null ? 0 : await findFirstKept(database, tenant, { days, now })
  const before = await findFirstKept(database, tenant, { days: limits.retentionFreeDays, now })
  const reader = makeReader(service.queryRunner, makeFreeTurn(call, params.app))
  const bytes = await readVersionBytes(reader, tenant.schema, { table, from, before })
  const cost = (price * BigInt(bytes.span) + gigabyte - 1n) / gigabyte
  return {
    collection: name,
    retention_days: days,
    free_days: limits.retentionFreeDays,
    tier: chooseTier(days),
    stored_bytes: bytes.all,
    billable_bytes: bytes.span,
    price_per_gb_month: String(price),
    monthly_cost: String(cost),
    monthly_cost_usd: Number(cost) / 10 ** currency.decimals,
    ...currency,
  }
}

function parseDays(asked: string | undefined, now: number | null): number | null {
  if (asked === undefined) return now
  if (asked === 'forever') return null
  if (Number(asked) > limits.retentionDaysMax)
    throw makeInvalidFault('/query/retention_days', `must not be over ${limits.retentionDaysMax}`)
  return Number(asked)
}
