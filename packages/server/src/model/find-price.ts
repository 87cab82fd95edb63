import { chooseLarger } from '../base/bigint.ts'
import { isRecord } from '../base/is-record.ts'
import type { Catalog } from './catalog.ts'
import type { FieldPrice, PriceRule, StoredView } from './definitions.ts'
import { hasLostSource, resolveOwnSources } from './own-sources.ts'
import { freePrice, type Price } from './policy.ts'
import { applyRules, hasPassesFor, isAskingPrice } from './price-rules.ts'
import type { Collection, Readable } from './readable.ts'

/**
 * Returns the price for others of reading a collection: its access policy's price, overruled model by model by the
 * application's rules.
 */
export function getReadPrice(catalog: Catalog, readable: Readable): Price {
  const rules = listRules(catalog, readable, 'read')
  const hasPasses = hasPassesFor(catalog, { [getTargetKind(readable)]: readable.name })
  return applyRules(rules, getOwnPrice(catalog, readable), hasPasses)
}

function getOwnPrice(catalog: Catalog, readable: Readable): Price {
  const { policy } = readable
  const isOwn = readable.kind === 'collection' || policy.unknownShape || isPriced(readable)
  return isOwn ? policy.price : sumSourcePrices(catalog, readable.view)
}

function isPriced({ access_policy: policy }: Readable): boolean {
  return isRecord(policy) && isRecord(policy.price)
}

/**
 * Returns true if others cannot buy a view: it packs or joins a source that has a price and may not be derived
 * from, and its owner has set no price for it. No price by the row could tell how many records are behind a row of
 * it. A view that has lost a source cannot be bought either, whatever its price.
 */
export function isUnsold(catalog: Catalog, readable: Readable): boolean {
  if (readable.kind === 'collection') return false
  const { view, plan } = readable
  const sources = resolveOwnSources(catalog, view)
  if (sources === 'gone') return true
  if (isPriced(readable)) return false
  // A definition that cannot be read any more may pack or join as well.
  if (plan?.isRows) return false
  if (listRules(catalog, readable, 'read').some(isAskingPrice)) return false
  return sources.some((source) => findDerivePrice(catalog, source.readable) === undefined)
}

/**
 * Computes the price of a view that its owner has not priced: as much as its sources would cost, so that it is no
 * cheap way around them. Each source that its definition names, even a view with a price of its own, adds its
 * derive price, its access price or its minimum, whichever is highest, and its prices by row and KB. Sources of other
 * applications charge for themselves.
 */
export function sumSourcePrices(catalog: Catalog, view: StoredView): Price {
  const sources = resolveOwnSources(catalog, view)
  // No price is asked of anybody: it is unsold.
  if (sources === 'gone') return freePrice
  const prices = [...new Set(sources.map(({ readable }) => readable))].map((source) => {
    const price = getReadPrice(catalog, source)
    const derive = findDerivePrice(catalog, source) ?? 0n
    return { ...price, perAccess: chooseLarger(derive, price.perAccess) }
  })
  return prices.reduce(addSourcePrice, freePrice)
}

/**
 * Adds the price of a source to the price of a view or query that is made of it. The sum has no bounds of its own: a
 * source's minimum becomes part of the price per access, and its discounts are only for buyers of the source itself.
 */
export function addSourcePrice(sum: Price, { perAccess, minimum = 0n, ...source }: Price): Price {
  return {
    perAccess: sum.perAccess + chooseLarger(minimum, perAccess),
    perRow: sum.perRow + source.perRow,
    perKb: sum.perKb + source.perKb,
  }
}

/**
 * Finds the price for others of deriving from a collection, for each request; undefined where its owner does not
 * allow it, or its source is gone.
 */
export function findDerivePrice(catalog: Catalog, readable: Readable): bigint | undefined {
  const { derive } = readable.policy
  if (derive === 'deny' || hasLostSource(catalog, readable)) return undefined
  if (derive !== undefined) return derive
  return isFree(getReadPrice(catalog, readable)) ? 0n : undefined
}

/** The price of a write to a collection: by its size, and by the values of fields (see field-price.ts). */
export type WritePrice = Price & { readonly fields: readonly PricedField[] }

/** `share` is undefined where the platform and the application share as usual. */
export type PricedField = { readonly field: string; readonly share: FieldPrice | undefined }

/**
 * Returns the price of a write to a collection, whoever writes: per call, per record, per KB of the request, and by
 * fields.
 */
export function getWritePrice(catalog: Catalog, collection: Collection | undefined): WritePrice {
  if (collection === undefined) return freeWritePrice
  const rules = listRules(catalog, collection, 'write')
  const known = writePrices.get(collection)
  if (known?.rules === rules) return known.price
  const price = { ...applyRules(rules, freePrice), fields: listPricedFields(collection, rules) }
  writePrices.set(collection, { rules, price })
  return price
}

const freeWritePrice: WritePrice = { ...freePrice, fields: [] }

/** The prices of collections, which never change, by the rules that they were computed by: each write asks for one. */
const writePrices = new WeakMap<
  Collection,
  { readonly rules: readonly PriceRule[]; readonly price: WritePrice }
>()

/** A field is owed once, whether an index or a rule says so, or both. */
function listPricedFields(collection: Collection, rules: readonly PriceRule[]): PricedField[] {
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
  const { perAccess, perRow, perKb, minimum = 0n } = price
  const byField = 'fields' in price && price.fields.length > 0
  return perAccess === 0n && perRow === 0n && perKb === 0n && minimum === 0n && !byField
}

const noRules: readonly PriceRule[] = []

type RulesByTarget = ReadonlyMap<string, readonly PriceRule[]>

/** By the rules of a catalog, which never change. A list may have a thousand, and is asked for each source of each view. */
const rulesByTarget = new WeakMap<readonly PriceRule[], RulesByTarget>()

function listRules(
  catalog: Catalog,
  readable: Readable,
  operation: 'read' | 'write',
): readonly PriceRule[] {
  return listTargetRules(catalog, `${operation} ${getTargetKind(readable)} ${readable.name}`)
}

/** Lists the rules of a target, which is written as the operation, the kind by which rules name it, and its name. */
export function listTargetRules(
  { pricing: { rules } }: Catalog,
  target: `${'read' | 'write'} ${string}`,
): readonly PriceRule[] {
  let sorted = rulesByTarget.get(rules)
  if (sorted === undefined) {
    sorted = sortByTarget(rules)
    rulesByTarget.set(rules, sorted)
  }
  return sorted.get(target) ?? noRules
}

function sortByTarget(rules: readonly PriceRule[]): RulesByTarget {
  const sorted = new Map<string, PriceRule[]>()
  for (const rule of rules)
    for (const [kind, name] of Object.entries(rule.target)) {
      const key = `${rule.operation} ${kind} ${name}`
      const same = sorted.get(key)
      if (same === undefined) sorted.set(key, [rule])
      else same.push(rule)
    }
  return sorted
}

/** Returns the kind by which rules name it. */
export function getTargetKind(readable: Readable): 'collection' | 'view' | 'api_collection' {
  if (readable.kind === 'view') return 'view'
  return readable.collection_type === 'api' ? 'api_collection' : 'collection'
}
