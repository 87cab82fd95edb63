import type { Catalog } from './catalog.ts'
import type { CollectionState } from './definitions.ts'
import { free, type Price } from './policy.ts'

/** What a read of a collection costs others: its access policy's price, overruled model by model by the application's rules. */
export function readPriceOf(catalog: Catalog, collection: CollectionState): Price {
  const rules = rulesFor(catalog, collection, 'read')
  const { price } = collection.policy
  return {
    perAccess: amountOf(rules, 'per_access') ?? price.perAccess,
    perRow: amountOf(rules, 'per_row') ?? amountOf(rules, 'per_record') ?? price.perRow,
    perKb: amountOf(rules, 'per_kb') ?? price.perKb,
  }
}

/** What a write to a collection costs whoever writes: per call, per record, per KB of the request. */
export function writePriceOf(catalog: Catalog, collection: CollectionState | undefined): Price {
  if (collection === undefined) return free
  const rules = rulesFor(catalog, collection, 'write')
  return {
    perAccess: amountOf(rules, 'per_access') ?? 0n,
    perRow: amountOf(rules, 'per_record') ?? amountOf(rules, 'per_row') ?? 0n,
    perKb: amountOf(rules, 'per_kb') ?? 0n,
  }
}

export function isFree(price: Price): boolean {
  return price.perAccess === 0n && price.perRow === 0n && price.perKb === 0n
}

/** Atomic units for so many rows and bytes: per access + per row + per started fraction of a KB's price, rounded up. */
export function costOf(price: Price, size: { rows: number; bytes: number }): bigint {
  const perKb = ceilDivide(price.perKb * BigInt(size.bytes), 1024n)
  return price.perAccess + price.perRow * BigInt(size.rows) + perKb
}

function ceilDivide(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b
}

function rulesFor(catalog: Catalog, collection: CollectionState, operation: 'read' | 'write') {
  return catalog.pricing.rules.filter(
    (rule) => rule.operation === operation && rule.target.collection === collection.name,
  )
}

function amountOf(
  rules: readonly { model: string; amount: string }[],
  model: string,
): bigint | undefined {
  const rule = rules.find((one) => one.model === model)
  return rule === undefined ? undefined : BigInt(rule.amount)
}
