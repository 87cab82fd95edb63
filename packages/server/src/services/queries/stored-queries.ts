import { Fault } from '../../base/fault.ts'
import { type Catalog, findReadable } from '../../model/catalog.ts'
import { isWhollyOffered } from '../../model/policy.ts'
import { resolveReadLevel } from '../../model/read-level.ts'
import type { KeptQuery } from '../../model/stored-query.ts'
import { hasOwnPrice } from './query-price.ts'

/** A version of a query, and the newest, which decides for all versions who may run them. */
export type QueryLookup = {
  readonly stored: KeptQuery
  readonly newest: KeptQuery
  readonly versions: readonly KeptQuery[]
}

/** Returns the requested version, the newest where none is named; 404 where it does not exist. */
export function requireQuery(
  catalog: Catalog,
  name: string,
  version?: number | undefined,
): QueryLookup {
  const versions = catalog.queries.get(name) ?? []
  const newest = versions.at(-1)
  const stored = version === undefined ? newest : versions.find((each) => each.version === version)
  if (newest === undefined || stored === undefined) throw makeNoQueryFault(name, version)
  return { stored, newest, versions }
}

/** A query that the caller may not know of answers like one that does not exist. */
export function makeNoQueryFault(name: string, version?: number | undefined): Fault {
  const which = version === undefined ? '' : ` of version ${version}`
  return new Fault('QUERY_NOT_FOUND', {
    message: `There is no query ${name}${which}`,
    details: { query: name, ...(version !== undefined && { version }) },
  })
}

/**
 * Returns whether callers without a right of the application may run the query: as its owner says, private data
 * excepted, or else where each of its own sources is open to strangers. A source that does not offer them all of its
 * fields opens no query that has neither word nor price of its owner. Another application's source is authorized for
 * each caller by itself.
 */
export function isPublic(
  catalog: Catalog,
  { stored, newest }: Pick<QueryLookup, 'stored' | 'newest'>,
): boolean {
  if (newest.public === false) return false
  const own = stored.sources
    .filter((name) => !name.includes('::'))
    .map((name) => findReadable(catalog, name))
  const levels = own.map((source) => source && resolveReadLevel(catalog, source))
  if (newest.public === true)
    return levels.every((level) => level !== undefined && level !== 'private')
  if (levels.some((level) => level !== 'public')) return false
  return (
    own.every((source) => source && isWhollyOffered(source.policy)) || hasOwnPrice(catalog, stored)
  )
}
