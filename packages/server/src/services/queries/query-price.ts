import { type Catalog, findReadable } from '../../model/catalog.ts'
import type { PriceRule, StoredQuery } from '../../model/definitions.ts'
import { parseRoot } from '../../model/parse-root.ts'
import { free, type Price, readPrice } from '../../model/policy.ts'
import { derivePriceOf, isUnsold, readPriceOf } from '../../model/price.ts'
import type { SourceUse } from '../../query/join.ts'

/** What a query's own application asks of others for it. */
export type QueryPrice = {
  readonly price: Price
  /** Whether its owner has set it: by the definition, or by a pricing rule. */
  readonly explicit: boolean
}

/**
 * By the version's price and the application's rules for the query, which are for all versions; without either what its own sources cost, so
 * that a query is no cheap way around them. Undefined where one of these may not be derived from, which others can
 * then not buy. Sources of other applications charge for themselves.
 */
export function queryPriceOf(
  catalog: Catalog,
  stored: StoredQuery,
  own: readonly OwnUse[],
): QueryPrice | undefined {
  const rules = catalog.pricing.rules.filter(
    (rule) => rule.operation === 'read' && rule.target.query === stored.name,
  )
  const isGiven = stored.price !== undefined && stored.price !== null
  if (!isGiven && rules.length === 0) {
    const price = floorOf(catalog, own)
    return price && { price, explicit: false }
  }
  const given = isGiven ? readPrice(stored.price ?? {}) : free
  const price = {
    perAccess: amountOf(rules, ['per_access']) ?? given.perAccess,
    perRow: amountOf(rules, ['per_row', 'per_record']) ?? given.perRow,
    perKb: amountOf(rules, ['per_kb']) ?? given.perKb,
  }
  return { price, explicit: true }
}

/** A use of a collection or view of the query's own application, by its name. */
export type OwnUse = Pick<SourceUse, 'kind'> & { readonly name: string }

/** The uses of what is the application's own. */
export function ownUses(uses: readonly SourceUse[], app: string): readonly OwnUse[] {
  return uses.flatMap(({ model, kind }) => {
    const root = parseRoot(model.includes('::') ? model : `${app}::${model}`)
    return root.app === app ? [{ kind, name: root.name }] : []
  })
}

/** What each source costs once: as rows by access, row and KB, as derived from by access alone. */
function floorOf(catalog: Catalog, own: readonly OwnUse[]): Price | undefined {
  const once = new Map(own.map((use) => [`${use.kind} ${use.name}`, use]))
  let sum = free
  for (const { kind, name } of once.values()) {
    const source = findReadable(catalog, name)
    if (source === undefined) continue
    const derive = kind === 'derived' ? derivePriceOf(catalog, source) : undefined
    if (kind === 'derived' ? derive === undefined : isUnsold(catalog, source)) return undefined
    const price =
      derive === undefined ? readPriceOf(catalog, source) : { ...free, perAccess: derive }
    sum = {
      perAccess: sum.perAccess + price.perAccess,
      perRow: sum.perRow + price.perRow,
      perKb: sum.perKb + price.perKb,
    }
  }
  return sum
}

function amountOf(rules: readonly PriceRule[], models: readonly string[]): bigint | undefined {
  const amount = rules.find(({ model }) => models.includes(model))?.amount
  return amount === undefined ? undefined : BigInt(amount)
}
