import { isRecord } from '../base/is-record.ts'
import { type Catalog, readableOfId } from './catalog.ts'
import type { CollectionState, FieldPrice, PriceRule, StoredView } from './definitions.ts'
import { free, type Price } from './policy.ts'

/** What a read of a collection costs others: its access policy's price, overruled model by model by the application's rules. */
export function readPriceOf(catalog: Catalog, collection: CollectionState): Price {
  const rules = rulesFor(catalog, collection, 'read')
  const price = ownPriceOf(catalog, collection)
  return {
    perAccess: amountOf(rules, 'per_access') ?? price.perAccess,
    perRow: amountOf(rules, 'per_row') ?? amountOf(rules, 'per_record') ?? price.perRow,
    perKb: amountOf(rules, 'per_kb') ?? price.perKb,
  }
}

function ownPriceOf(catalog: Catalog, collection: CollectionState): Price {
  const { policy, view } = collection
  if (view === undefined || policy.unknownShape || isPriced(collection)) return policy.price
  return priceOfSources(catalog, view)
}

function isPriced({ access_policy: policy }: CollectionState): boolean {
  return isRecord(policy) && isRecord(policy.price)
}

/**
 * Whether others cannot buy a view: it packs or joins what has a price and may not be derived from, and its owner has
 * set no price for it. How many records are behind a row of it no price by the row could tell.
 */
export function isUnsold(catalog: Catalog, collection: CollectionState): boolean {
  const { view } = collection
  if (view === undefined || isPriced(collection)) return false
  const plan = catalog.views.get(view.id)?.plan
  if (plan === undefined || plan.isRows) return false
  if (rulesFor(catalog, collection, 'read').length > 0) return false
  return view.sources.some(({ app, id }) => {
    const source = app === view.app ? readableOfId(catalog, id) : undefined
    return source !== undefined && derivePriceOf(catalog, source) === undefined
  })
}

/**
 * What a view costs whose owner has not priced it: as much as its sources would, so that it is no cheap way around
 * them. Each that its definition names, be it a view with a price of its own, adds what deriving from it costs, or what
 * an access to it costs where that is more, and its prices by row and KB. Sources of other applications charge for
 * themselves.
 */
export function priceOfSources(catalog: Catalog, { app, sources }: StoredView): Price {
  const own = sources.filter((source) => source.app === app)
  const prices = [...new Set(own.map(({ id }) => id))].flatMap((id) => {
    const source = readableOfId(catalog, id)
    if (source === undefined) return []
    const price = readPriceOf(catalog, source)
    const derive = derivePriceOf(catalog, source) ?? 0n
    return [{ ...price, perAccess: derive > price.perAccess ? derive : price.perAccess }]
  })
  return prices.reduce(
    (sum, price) => ({
      perAccess: sum.perAccess + price.perAccess,
      perRow: sum.perRow + price.perRow,
      perKb: sum.perKb + price.perKb,
    }),
    free,
  )
}

/** What deriving from a collection costs others for each request; undefined where its owner does not allow it. */
export function derivePriceOf(catalog: Catalog, collection: CollectionState): bigint | undefined {
  const { derive } = collection.policy
  if (derive === 'deny') return undefined
  if (derive !== undefined) return derive
  return isFree(readPriceOf(catalog, collection)) ? 0n : undefined
}

/** What a write to a collection costs: by its size, and by the values of fields (see field-price.ts). */
export type WritePrice = Price & { readonly fields: readonly PricedField[] }

/** `share` is undefined where the platform and the application share as of all else. */
export type PricedField = { readonly field: string; readonly share: FieldPrice | undefined }

/** What a write to a collection costs whoever writes: per call, per record, per KB of the request, and by fields. */
export function writePriceOf(
  catalog: Catalog,
  collection: CollectionState | undefined,
): WritePrice {
  if (collection === undefined) return { ...free, fields: [] }
  const rules = rulesFor(catalog, collection, 'write')
  return {
    perAccess: amountOf(rules, 'per_access') ?? 0n,
    perRow: amountOf(rules, 'per_record') ?? amountOf(rules, 'per_row') ?? 0n,
    perKb: amountOf(rules, 'per_kb') ?? 0n,
    fields: pricedFields(collection, rules),
  }
}

/** A field is owed once, whether an index or a rule says so, or both. */
function pricedFields(collection: CollectionState, rules: readonly PriceRule[]): PricedField[] {
  const shares = new Map<string, FieldPrice | undefined>()
  for (const { model, field } of rules)
    if (model === 'field_value' && field !== undefined) shares.set(field, undefined)
  for (const { price, fields } of collection.indexes) {
    const [field] = fields
    if (price !== undefined && field !== undefined) shares.set(field, price)
  }
  return [...shares].map(([field, share]) => ({ field, share }))
}

export function isFree(price: Price | WritePrice): boolean {
  const byField = 'fields' in price && price.fields.length > 0
  return price.perAccess === 0n && price.perRow === 0n && price.perKb === 0n && !byField
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
    ({ operation: kind, target }) =>
      kind === operation &&
      (collection.view === undefined ? target.collection : target.view) === collection.name,
  )
}

function amountOf(rules: readonly PriceRule[], model: string): bigint | undefined {
  const amount = rules.find((one) => one.model === model)?.amount
  return amount === undefined ? undefined : BigInt(amount)
}
