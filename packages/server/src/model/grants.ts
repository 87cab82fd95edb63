import type { Catalog } from './catalog.ts'
import type { GrantDefinition } from './definitions.ts'
import { findDerivePrice } from './find-price.ts'
import type { Readable } from './readable.ts'

/**
 * Finds the grant that allows an application to use a collection or view in its views; undefined where its owner
 * allows nothing.
 */
export function findGrant(
  catalog: Catalog,
  source: Pick<Readable, 'id'>,
  grantee: string,
): GrantDefinition | undefined {
  return [...catalog.grants.values()].find(
    (grant) => grant.source === source.id && grant.grantee === grantee,
  )
}

/**
 * Finds the price of each read of such a view on account of the source; undefined where its owner does not allow
 * it.
 */
export function findGrantedPrice(
  catalog: Catalog,
  source: Readable,
  grantee: string,
): bigint | undefined {
  const grant = findGrant(catalog, source, grantee)
  if (grant === undefined) return undefined
  return grant.per_access === null ? findDerivePrice(catalog, source) : BigInt(grant.per_access)
}
