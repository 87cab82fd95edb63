import { limits } from '@tollbase/contract/limits'
import type { MeasuredPart } from '@tollbase/verify/sale-details'
import { awaitTurn } from '../../base/await-turn.ts'
import { Fault } from '../../base/fault.ts'
import type { Catalog } from '../../model/catalog.ts'
import { findDerivePrice, getReadPrice, isUnsold } from '../../model/find-price.ts'
import { freePrice } from '../../model/policy.ts'
import { PriceReplay, type ReplayPrice } from '../../model/replay-prices.ts'
import {
  countSales,
  listMeasuredSales,
  listPaidBuyers,
  listPassesAt,
  type MeasuredSale,
  readMeasured,
} from '../../projections/measured-sales.ts'
import type { SalesPeriod } from '../../projections/read-sales.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call, Uses } from '../../services/call.ts'
import { computeQueryPrice } from '../../services/queries/query-price.ts'
import { addSale, type Comparison } from './compare-sales.ts'
import { findPassRule } from './pass-rules.ts'

const pageSize = 500
const pageBytes = 1024 * 1024
/** Characters of JSON that are read and priced before others have their turn: a sale may have a thousand parts. */
const charsPerTurn = 64 * 1024

type Replayed = {
  readonly tenant: Tenant
  /** With the rules that are tried. */
  readonly catalog: Catalog
  readonly period: SalesPeriod
}

/** Prices the sales of the period anew, page by page; 413 where they are too many for one request. */
export async function replaySales(
  call: Call<'database' | 'tenants' | 'queryPlans'>,
  { tenant, catalog, period }: Replayed,
  comparison: Comparison,
): Promise<void> {
  const { service } = call
  const { database } = service
  const counted = { ...period, fromMs: findStart(catalog, period.fromMs) }
  await refuseTooMany(service, counted)
  const replay = new PriceReplay(catalog)
  for (const { item_kind: kind, item: name, ...pass } of await listPassesAt(
    database,
    period,
    counted.fromMs,
  )) {
    const times = { fromMs: Number(pass.from_ms), untilMs: Number(pass.until_ms) }
    replay.notePass({ buyer: pass.buyer, kind, name, ...times })
  }
  const prices = new Map<string, ReplayPrice>()
  let after: MeasuredSale | undefined
  let chars = 0
  while (true) {
    const { sales, isLast } = await listMeasuredSales(database, counted, {
      ...{ after, limit: pageSize, bytes: pageBytes },
    })
    const buyers = [...new Set(sales.map(({ buyer }) => buyer))]
    const asked = { buyers, beforeMs: counted.fromMs }
    for (const buyer of await listPaidBuyers(database, period, asked)) replay.notePaid(buyer)
    for (const row of sales) {
      const sale = { ...row, measured: readMeasured(row, period.app) }
      await addPrices(call, { tenant, catalog, parts: sale.measured ?? [] }, prices)
      const priced = replay.replay(sale, (part) => prices.get(formatPart(part)) ?? 'gone')
      if (sale.timeMs >= period.fromMs) addSale(comparison, sale, priced)
      chars += row.measuredText?.length ?? 0
      if (chars < charsPerTurn) continue
      chars = 0
      await awaitTurn()
    }
    after = sales.at(-1)
    if (isLast) return
  }
}

/** Tiers and quotas count from the beginning of the month, in UTC; without any the period is all that counts. */
function findStart({ pricing }: Catalog, fromMs: number): number {
  const isCounted = pricing.rules.some(
    ({ model, tiers }) => tiers !== undefined || model === 'free_quota',
  )
  if (!isCounted) return fromMs
  const from = new Date(fromMs)
  return Date.UTC(from.getUTCFullYear(), from.getUTCMonth())
}

async function refuseTooMany({ database }: Uses<'database'>, period: SalesPeriod): Promise<void> {
  const most = limits.simulatedSalesMax
  if ((await countSales(database, period, most + 1)) <= most) return
  const from = new Date(period.fromMs).toISOString()
  throw new Fault('RESULT_TOO_LARGE', {
    message: `A simulation prices at most ${most} sales anew, and there are more since ${from}; give a shorter period`,
    details: { sales_max: most, from },
  })
}

/** Adds the prices of what a sale names for the first time. */
async function addPrices(
  call: Call<'tenants' | 'queryPlans'>,
  {
    tenant,
    catalog,
    parts,
  }: Omit<Replayed, 'period'> & { readonly parts: readonly MeasuredPart[] },
  prices: Map<string, ReplayPrice>,
): Promise<void> {
  for (const part of parts) {
    const key = formatPart(part)
    if (prices.has(key)) continue
    prices.set(key, await findPrice(call, { tenant, catalog }, part))
    // A price is looked for among a thousand rules, for each source of a view.
    await awaitTurn()
  }
}

function formatPart(part: MeasuredPart): string {
  const { kind, name, by } = part
  const which = by === 'pass' ? part.hours : by === 'rows' ? part.version : ''
  return `${by} ${kind} ${which} ${name}`
}

/** Finds the price of a part by the rules that are tried, as a read today would. */
async function findPrice(
  { service, requestInfo }: Call<'tenants' | 'queryPlans'>,
  { tenant, catalog }: Pick<Replayed, 'tenant' | 'catalog'>,
  part: MeasuredPart,
): Promise<ReplayPrice> {
  const { kind, name, by } = part
  if (by === 'pass') {
    const amount = findPassRule(catalog, part, part.hours)?.amount
    return amount === undefined ? 'unsold' : { price: { ...freePrice, perAccess: BigInt(amount) } }
  }
  if (by !== 'rows' && by !== 'derived') return 'gone'
  if (kind === 'query') {
    const versions = catalog.queries.get(name) ?? []
    const stored = versions.find(({ version }) => version === part.version)
    if (stored === undefined) return 'gone'
    const facts = await service.queryPlans.findFacts(service.tenants, tenant, {
      stored,
      onRead: requestInfo.context.noteRead,
    })
    if (facts === undefined) return 'gone'
    const price = computeQueryPrice(catalog, stored, facts.own)?.price
    return price === undefined ? 'unsold' : { price }
  }
  const readable = (kind === 'view' ? catalog.viewsByName : catalog.byName).get(name)
  if (readable === undefined) return 'gone'
  if (by === 'rows')
    return isUnsold(catalog, readable) ? 'unsold' : { price: getReadPrice(catalog, readable) }
  const perAccess = findDerivePrice(catalog, readable)
  return perAccess === undefined ? 'unsold' : { price: { ...freePrice, perAccess } }
}
