import { chooseLarger, chooseSmaller } from '../base/bigint.ts'
import { computeCost, computeQuotientUp, limitCost, type Size } from './compute-cost.ts'
import type { Discounts, MeterPeriod, MeterUnit, Price } from './policy.ts'

/** Units of one purchase, or of many. */
export type Units = Readonly<Record<MeterUnit, bigint>>

/** The units that a buyer had of a thing in one period, such as 2026-11 or 2026-11-23. */
export type Usage = { readonly period: string; readonly paid: Units; readonly free: Units }

export type MeterState = {
  readonly nowMs: number
  /** A time pass is valid now. */
  readonly hasPass: boolean
  /** The buyer has paid this application once. */
  readonly hasPaid: boolean
  /** The uses by this buyer, past and under way, by period. */
  readonly used: readonly Usage[]
}

export const noUnits: Units = { request: 0n, row: 0n, kb: 0n }

/** A cost, and what is to be noted for it. */
export type MeteredCost = { readonly cost: bigint; readonly uses: readonly Usage[] }

/** Returns whether what a buyer had before decides on what these prices come to. */
export function isMetered(prices: readonly Price[]): boolean {
  return prices.some(({ discounts }) => discounts !== undefined)
}

/**
 * Computes the cost for a buyer who had these things before; never more than for a stranger. Where a quota leaves
 * nothing to pay, there is no minimum.
 */
export function computeMeteredCost(price: Price, size: Size, state: MeterState): MeteredCost {
  const { discounts } = price
  if (discounts === undefined) return { cost: computeCost(price, size), uses: [] }
  if (state.hasPass) return { cost: 0n, uses: [] }
  const wanted: Units = { request: 1n, row: BigInt(size.rows), kb: BigInt(size.bytes) }
  const left = findLeft(discounts, state)
  const note = (paid: Units, free: Units) => listUses(discounts, state, { paid, free })
  if (left.request > 0n) return { cost: 0n, uses: note(noUnits, { ...noUnits, request: 1n }) }
  const free = mapUnits((unit) =>
    unit === 'request' ? 0n : chooseSmaller(wanted[unit], left[unit]),
  )
  const paid = mapUnits((unit) => wanted[unit] - free[unit])
  const sum =
    sumTiers(price, state, { unit: 'request', count: paid.request }) +
    sumTiers(price, state, { unit: 'row', count: paid.row }) +
    computeQuotientUp(sumTiers(price, state, { unit: 'kb', count: paid.kb }), 1024n)
  const cost = limitCost(price, sum)
  const isCovered = sum === 0n && (left.row > 0n || left.kb > 0n)
  if (!isCovered) return { cost, uses: note(paid, free) }
  // An answer that a minimum asks money for is not free for ever: without a row or a byte it uses one of the quota.
  const isUnused = cost > 0n && free.row === 0n && free.kb === 0n
  return { cost: 0n, uses: note(paid, isUnused ? takeLeast(left) : free) }
}

/** The least that is counted of a quota: a row, or a KB where it has no rows left. */
function takeLeast(left: Units): Units {
  if (left.row > 0n) return { ...noUnits, row: 1n }
  return { ...noUnits, kb: chooseSmaller(leastBytes, left.kb) }
}

const leastBytes = 1024n

/** Computes what to keep for a request before its size is known: the most that it can use of each quota. */
export function reserveUses(price: Price, most: Size, state: MeterState): readonly Usage[] {
  const { discounts } = price
  if (discounts === undefined || state.hasPass) return []
  const left = findLeft(discounts, state)
  // A free request uses no other quota. To keep that too would make others pay for what nobody uses.
  if (left.request > 0n)
    return listUses(discounts, state, { paid: noUnits, free: { ...noUnits, request: 1n } })
  // At least one unit: the minimum is waived only if the quota had something left.
  const wanted: Units = {
    request: 1n,
    row: chooseLarger(BigInt(most.rows), 1n),
    kb: chooseLarger(BigInt(most.bytes), leastBytes),
  }
  const free = mapUnits((unit) => chooseSmaller(wanted[unit], left[unit]))
  return listUses(discounts, state, { paid: noUnits, free })
}

/** Names the period that a time is in, in UTC. */
export function formatPeriod(nowMs: number, period: MeterPeriod): string {
  return new Date(nowMs).toISOString().slice(0, period === 'day' ? 10 : 7)
}

/** Returns true where a time is in a period that `formatPeriod` named. */
export function isCurrentPeriod(period: string, nowMs: number): boolean {
  return new Date(nowMs).toISOString().startsWith(period)
}

/** Lists the periods that the discounts count in at that time. */
export function listPeriods({ tiers, quotas }: Discounts, nowMs: number): readonly string[] {
  return [...new Set([...tiers, ...quotas].map(({ period }) => formatPeriod(nowMs, period)))]
}

/** Adds up what is used of one thing, by period. */
export function sumUses(uses: readonly Usage[]): readonly Usage[] {
  const sums = new Map<string, Usage>()
  for (const { period, paid, free } of uses) {
    const sum = sums.get(period) ?? { period, paid: noUnits, free: noUnits }
    sums.set(period, {
      period,
      paid: mapUnits((unit) => sum.paid[unit] + paid[unit]),
      free: mapUnits((unit) => sum.free[unit] + free[unit]),
    })
  }
  return [...sums.values()]
}

/** The rest of each quota; bytes for KB. */
function findLeft({ quotas }: Discounts, { hasPaid, nowMs, used }: MeterState): Units {
  return mapUnits((unit) => {
    const quota = quotas.find((one) => one.unit === unit)
    if (quota === undefined || !hasPaid) return 0n
    const known = used.find(({ period }) => period === formatPeriod(nowMs, quota.period))
    const left = quota.quantity * getScale(unit) - (known?.free[unit] ?? 0n)
    return chooseLarger(left, 0n)
  })
}

/**
 * Sums the prices of this many units, after those that were already paid for. Each unit costs the amount of the last
 * tier that begins below it. The result is in atomic units; for KB it is 1024 times as much, because KB are counted in
 * bytes.
 */
function sumTiers(
  price: Price,
  { nowMs, used }: MeterState,
  { unit, count }: { readonly unit: MeterUnit; readonly count: bigint },
): bigint {
  const steps = (price.discounts?.tiers ?? []).filter((tier) => tier.unit === unit)
  const [first] = steps
  const base = unit === 'request' ? price.perAccess : unit === 'row' ? price.perRow : price.perKb
  if (first === undefined) return base * count
  const known = used.find(({ period }) => period === formatPeriod(nowMs, first.period))
  const from = known?.paid[unit] ?? 0n
  const to = from + count
  const bounds = [{ above: 0n, amount: base }, ...steps]
  return bounds.reduce((sum, { above, amount }, at) => {
    const start = chooseLarger(above * getScale(unit), from)
    const next = bounds[at + 1]
    const end = next === undefined ? to : chooseSmaller(next.above * getScale(unit), to)
    return end > start ? sum + (end - start) * amount : sum
  }, 0n)
}

function getScale(unit: MeterUnit): bigint {
  return unit === 'kb' ? 1024n : 1n
}

function listUses(
  discounts: Discounts,
  { nowMs }: MeterState,
  { paid, free }: Pick<Usage, 'paid' | 'free'>,
): readonly Usage[] {
  return listPeriods(discounts, nowMs).map((period) => ({ period, paid, free }))
}

function mapUnits(value: (unit: MeterUnit) => bigint): Units {
  return { request: value('request'), row: value('row'), kb: value('kb') }
}
