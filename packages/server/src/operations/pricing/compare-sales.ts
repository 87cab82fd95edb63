import { chooseLarger } from '../../base/bigint.ts'
import type { PastSale, ReplayedPart, ReplayGap } from '../../model/replay-prices.ts'

const itemsMax = 100

type Sums = { sales: number; earned: bigint; simulated: bigint }
type ItemSums = Sums & {
  readonly item: { readonly kind: string; readonly name: string }
  readonly operation: 'read' | 'write' | 'pass'
  notForSale: number
}

/** The earned and the simulated sums. */
export type Comparison = {
  readonly total: Sums
  readonly items: Map<string, ItemSums>
  readonly missing: { sales: number; earned: bigint; reasons: Record<ReplayGap, number> }
}

export function createComparison(): Comparison {
  const reasons = { older: 0, granted: 0, gone: 0, field: 0 } satisfies Record<ReplayGap, number>
  return {
    total: { sales: 0, earned: 0n, simulated: 0n },
    items: new Map(),
    missing: { sales: 0, earned: 0n, reasons },
  }
}

/** Adds a sale as it was and as it would have been. */
export function addSale(
  { total, items, missing }: Comparison,
  { gross }: PastSale,
  replayed: readonly ReplayedPart[] | ReplayGap,
): void {
  if (typeof replayed === 'string') {
    missing.sales += 1
    missing.earned += gross
    missing.reasons[replayed] += 1
    return
  }
  total.sales += 1
  const seen = new Set<string>()
  for (const { part, cost } of replayed) {
    const { kind, name, by, charged } = part
    const operation = by === 'pass' ? by : by === 'written' || by === 'indexed' ? 'write' : 'read'
    const key = `${operation} ${kind} ${name}`
    const sums = items.get(key) ?? {
      ...{ item: { kind, name }, operation },
      ...{ sales: 0, earned: 0n, simulated: 0n, notForSale: 0 },
    }
    items.set(key, sums)
    if (!seen.has(key)) sums.sales += 1
    seen.add(key)
    if (cost === 'unsold') sums.notForSale += 1
    const simulated = cost === 'unsold' ? 0n : cost
    for (const one of [sums, total]) {
      one.earned += BigInt(charged)
      one.simulated += simulated
    }
  }
}

export function describeComparison({ total, items, missing }: Comparison) {
  const largest = [...items.values()].toSorted((a, b) => compareAmounts(findMost(b), findMost(a)))
  return {
    sales: total.sales,
    ...compareSums(total),
    items: largest.slice(0, itemsMax).map(({ item, operation, notForSale, ...sums }) => ({
      item,
      operation,
      sales: sums.sales,
      ...compareSums(sums),
      not_for_sale: notForSale,
    })),
    not_simulated: {
      sales: missing.sales,
      earned: String(missing.earned),
      reasons: missing.reasons,
    },
  }
}

function compareSums({ earned, simulated }: Sums) {
  return {
    earned: String(earned),
    simulated: String(simulated),
    difference: String(simulated - earned),
  }
}

function findMost({ earned, simulated }: Sums): bigint {
  return chooseLarger(earned, simulated)
}

function compareAmounts(a: bigint, b: bigint): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
