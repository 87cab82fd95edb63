import { versionOf } from '../../model/definition-version.ts'
import { grantedPriceOf, grantOf } from '../../model/grants.ts'
import { free, type Price } from '../../model/policy.ts'
import { derivePriceOf, isFree, readPriceOf } from '../../model/price.ts'
import type { JudgedSource } from './authorize-sources.ts'

/** What may ask for money in an answer: a source, or what its owner has priced by itself. */
export type Charge = Pick<JudgedSource, 'kind' | 'tenant'> & {
  /** `app::name`. */
  readonly name: string
  readonly emptyAnswerFree: boolean
  /** Today's; undefined where it cannot be bought. */
  readonly price: Price | undefined
}

/** Whether it asks for money today, or cannot be had for money either. */
export function isCharged({ price }: Charge): boolean {
  return price === undefined || !isFree(price)
}

/**
 * What others than the caller may ask him money for, whether they do so today or not: a collection counts once as
 * rows, and once as derived from, however often it is used.
 */
export function chargesOf(sources: readonly JudgedSource[]): readonly Charge[] {
  const charges = new Map<string, Charge>()
  for (const source of sources) {
    if (source.free) continue
    const { kind, tenant, collection, grantee = '' } = source
    charges.set(`${kind} ${grantee} ${tenant.application.app_id} ${collection.id}`, {
      kind,
      tenant,
      // Who reads a view need not know what is behind it, which may be private.
      name: grantee === '' ? `${tenant.application.app_id}::${collection.name}` : grantee,
      emptyAnswerFree: collection.policy.emptyAnswerFree,
      price: priceOf(source),
    })
  }
  return [...charges.values()]
}

/** What the names of a question stand for now, and what of it is the caller's own; JSON. */
export function meaningOfSources(sources: readonly JudgedSource[]): readonly unknown[] {
  return sources.map(({ kind, tenant, collection, free: isFreeToCaller, grantee, dataSets }) => [
    kind,
    isFreeToCaller,
    versionOf(tenant, collection),
    [...dataSets].map(([name, { version }]) => [name, version]),
    ...(grantee === undefined
      ? []
      : [grantee, grantOf(tenant.data.catalog, collection, grantee)?.id ?? null]),
  ])
}

/** Rows cost by access, row and KB as they are listed; what is derived costs by access alone. */
function priceOf({ kind, tenant, collection, grantee }: JudgedSource): Price | undefined {
  const { catalog } = tenant.data
  if (kind === 'rows') return readPriceOf(catalog, collection)
  const perAccess =
    grantee === undefined
      ? derivePriceOf(catalog, collection)
      : grantedPriceOf(catalog, collection, grantee)
  return perAccess === undefined ? undefined : { ...free, perAccess }
}
