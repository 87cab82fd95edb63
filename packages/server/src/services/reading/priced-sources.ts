import { getDefinitionVersion } from '../../model/definition-version.ts'
import { findDerivePrice, getReadPrice, isFree } from '../../model/find-price.ts'
import { findGrant, findGrantedPrice } from '../../model/grants.ts'
import { freePrice, type Price } from '../../model/policy.ts'
import type { SoldItem } from '../../projections/sales.ts'
import type { AuthorizedSource } from './authorize-sources.ts'

/** A part of an answer that may cost money: a source, or a query that its owner has priced by itself. */
export type PricedSource = Pick<AuthorizedSource, 'kind' | 'tenant'> & {
  /** `app::name`. */
  readonly name: string
  readonly emptyAnswerFree: boolean
  /** Its owner accepts that a quote shows what the answer holds. */
  readonly isQuotedByResult: boolean
  readonly soldAs: SoldItem['kind']
  /** The kind of its use in the ledger's entry. */
  readonly measuredBy: 'rows' | 'derived' | 'granted'
  /** That of the predefined query. */
  readonly version?: number
  /** Today's price; undefined where it cannot be bought. */
  readonly price: Price | undefined
}

/** Returns whether it costs money today, or cannot be bought at all. */
export function hasPrice({ price }: PricedSource): boolean {
  return price === undefined || !isFree(price)
}

/**
 * Lists the sources that others may charge the caller for, whether they do so today or not: a collection counts once as
 * rows and once as derived, however often it is used.
 */
export function listPricedSources(sources: readonly AuthorizedSource[]): readonly PricedSource[] {
  const priced = new Map<string, PricedSource>()
  for (const source of sources) {
    if (source.free) continue
    const { kind, tenant, readable, grantee = '' } = source
    priced.set(`${kind} ${grantee} ${tenant.application.app_id} ${readable.id}`, {
      kind,
      tenant,
      // A reader of a view need not know the sources behind it, which may be private.
      name: grantee === '' ? `${tenant.application.app_id}::${readable.name}` : grantee,
      soldAs: grantee === '' ? readable.kind : 'view',
      measuredBy: grantee === '' ? kind : 'granted',
      emptyAnswerFree: readable.policy.emptyAnswerFree,
      isQuotedByResult: readable.policy.isQuotedByResult,
      price: findPrice(source),
    })
  }
  return [...priced.values()]
}

/** Returns what the names in a read request stand for now, and which of it is the caller's own; JSON. */
export function buildSourcesMeaning(sources: readonly AuthorizedSource[]): readonly unknown[] {
  return sources.map(({ kind, tenant, readable, free: isFreeToCaller, grantee, dataSets }) => [
    kind,
    isFreeToCaller,
    getDefinitionVersion(tenant, readable),
    [...dataSets].map(([name, { version }]) => [name, version]),
    ...(grantee === undefined
      ? []
      : [grantee, findGrant(tenant.data.catalog, readable, grantee)?.id ?? null]),
  ])
}

/** Returns the price of a source: rows cost by access, row and KB; derived sources cost by access alone. */
function findPrice({ kind, tenant, readable, grantee }: AuthorizedSource): Price | undefined {
  const { catalog } = tenant.data
  if (kind === 'rows') return getReadPrice(catalog, readable)
  const perAccess =
    grantee === undefined
      ? findDerivePrice(catalog, readable)
      : findGrantedPrice(catalog, readable, grantee)
  return perAccess === undefined ? undefined : { ...freePrice, perAccess }
}
