import type { Catalog } from './catalog.ts'
import type { CollectionState, GrantDefinition } from './definitions.ts'
import { derivePriceOf } from './price.ts'

/** What the owner of a collection or view allows an application to do with it in its views; undefined: nothing. */
export function grantOf(
  catalog: Catalog,
  source: Pick<CollectionState, 'id'>,
  grantee: string,
): GrantDefinition | undefined {
  return [...catalog.grants.values()].find(
    (grant) => grant.source === source.id && grant.grantee === grantee,
  )
}

/** What each read of such a view costs on account of the source; undefined where its owner does not allow it. */
export function grantedPriceOf(
  catalog: Catalog,
  source: CollectionState,
  grantee: string,
): bigint | undefined {
  const grant = grantOf(catalog, source, grantee)
  if (grant === undefined) return undefined
  return grant.per_access === null ? derivePriceOf(catalog, source) : BigInt(grant.per_access)
}
