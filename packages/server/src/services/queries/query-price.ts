import { type Catalog, findReadable } from '../../model/catalog.ts'
import {
  addSourcePrice,
  findDerivePrice,
  getReadPrice,
  isUnsold,
  listTargetRules,
} from '../../model/find-price.ts'
import { parseRoot } from '../../model/parse-root.ts'
import { freePrice, type Price, parsePrice } from '../../model/policy.ts'
import { applyRules, hasPassesFor, isAskingPrice } from '../../model/price-rules.ts'
import type { KeptQuery } from '../../model/stored-query.ts'
import type { SourceUse } from '../../query/join.ts'

/** The price that a query's own application asks of others. */
export type QueryPrice = {
  readonly price: Price
  /** True where its owner has set it, by the definition or by a pricing rule. */
  readonly explicit: boolean
}

/**
 * Computes the price from the version's own price and the application's rules for the query, which hold for all
 * versions; without either it is the price of its own sources, so that a query is no cheap way around them.
 * Undefined where one of these is gone, or may not be derived from: then others cannot buy the query. Sources of other
 * applications charge for themselves.
 */
export function computeQueryPrice(
  catalog: Catalog,
  stored: KeptQuery,
  own: readonly OwnUse[],
): QueryPrice | undefined {
  const rules = listTargetRules(catalog, `read query ${stored.name}`)
  const explicit = hasOwnPrice(catalog, stored)
  const price = explicit ? parsePrice(stored.price ?? {}) : computeFloor(catalog, own)
  const hasPasses = hasPassesFor(catalog, { query: stored.name })
  return price && { price: applyRules(rules, price, hasPasses), explicit }
}

/** Returns true if the owner has set a price of the query, by the version's definition or by a pricing rule. */
export function hasOwnPrice(catalog: Catalog, { name, price }: KeptQuery): boolean {
  const isGiven = price !== undefined && price !== null
  return isGiven || listTargetRules(catalog, `read query ${name}`).some(isAskingPrice)
}

/** A use of a collection or view of the query's own application, by its name. */
export type OwnUse = Pick<SourceUse, 'kind'> & { readonly name: string }

/** Lists the uses of the application's own sources. */
export function listOwnUses(uses: readonly SourceUse[], app: string): readonly OwnUse[] {
  return uses.flatMap(({ model, kind }) => {
    const root = parseRoot(model.includes('::') ? model : `${app}::${model}`)
    return root.app === app ? [{ kind, name: root.name }] : []
  })
}

/** Sums the price of each source once: rows by access, row and KB, derived sources by access alone. */
function computeFloor(catalog: Catalog, own: readonly OwnUse[]): Price | undefined {
  const once = new Map(own.map((use) => [`${use.kind} ${use.name}`, use]))
  let sum = freePrice
  for (const { kind, name } of once.values()) {
    const source = findReadable(catalog, name)
    if (source === undefined) return undefined
    const derive = kind === 'derived' ? findDerivePrice(catalog, source) : undefined
    if (kind === 'derived' ? derive === undefined : isUnsold(catalog, source)) return undefined
    const price =
      derive === undefined ? getReadPrice(catalog, source) : { ...freePrice, perAccess: derive }
    sum = addSourcePrice(sum, price)
  }
  return sum
}
