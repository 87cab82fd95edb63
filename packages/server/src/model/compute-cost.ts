import type { Price } from './policy.ts'

export type Size = { readonly rows: number; readonly bytes: number }

export const noSize: Size = { rows: 0, bytes: 0 }

/** Computes atomic units for these rows and bytes, within the bounds of the price. */
export function computeCost(price: Price, size: Size): bigint {
  return limitCost(price, computeUnboundedCost(price, size))
}

/** Computes the cost of each part by the prices alone. */
export function computeDue(
  prices: readonly Price[],
  sizes: readonly (Size | null)[],
): readonly bigint[] {
  return prices.map((price, at) => {
    const size = sizes[at]
    return size === null ? 0n : computeCost(price, size ?? noSize)
  })
}

/** Computes the cost of all parts together. */
export function computeTotalDue(prices: readonly Price[], sizes: readonly (Size | null)[]): bigint {
  return computeDue(prices, sizes).reduce((sum, cost) => sum + cost, 0n)
}

/** Computes the cost without bounds: per access + per row + per started fraction of a KB's price, rounded up. */
export function computeUnboundedCost(price: Price, { rows, bytes }: Size): bigint {
  const perKb = computeQuotientUp(price.perKb * BigInt(bytes), 1024n)
  return price.perAccess + price.perRow * BigInt(rows) + perKb
}

/** Raises a cost to the least, and cuts it to the most, that a request may cost. */
export function limitCost({ minimum = 0n, maximum }: Price, cost: bigint): bigint {
  if (cost < minimum) return minimum
  return maximum !== undefined && cost > maximum ? maximum : cost
}

/** Parts of a breakdown: the amounts by which bounds raise and cut the sum of the others. */
export type BoundParts = { readonly minimum?: number; readonly maximum?: number }

/** Computes by how much the bounds of these prices raise and cut what requests of this size cost. */
export function computeBoundParts(prices: readonly Price[], size: Size): BoundParts {
  const changes = prices.map(
    (price) => computeCost(price, size) - computeUnboundedCost(price, size),
  )
  return describeBoundParts(changes)
}

export function describeBoundParts(changes: readonly bigint[]): BoundParts {
  const sum = (isCounted: (change: bigint) => boolean) =>
    Number(changes.filter(isCounted).reduce((total, change) => total + change, 0n))
  const [raised, cut] = [sum((change) => change > 0n), sum((change) => change < 0n)]
  return { ...(raised > 0 && { minimum: raised }), ...(cut < 0 && { maximum: cut }) }
}

/**
 * Divides amounts that are not negative, rounded up to a whole unit.
 * @example computeQuotientUp(1025n, 1024n) // 2n
 */
export function computeQuotientUp(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b
}
