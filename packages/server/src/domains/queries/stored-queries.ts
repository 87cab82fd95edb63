import { Fault } from '../../base/fault.ts'
import { type Catalog, findReadable } from '../tenancy/catalog.ts'
import type { StoredQuery } from '../tenancy/definitions.ts'

/** A version of a query, and the newest: price, rate limit and who may ask are the newest one's for all of them. */
export type FoundQuery = {
  readonly stored: StoredQuery
  readonly newest: StoredQuery
  readonly versions: readonly StoredQuery[]
}

/** The version that is asked for, the newest where none is; 404 where it is not there. */
export function findQuery(
  catalog: Catalog,
  name: string,
  version?: number | undefined,
): FoundQuery {
  const versions = catalog.queries.get(name) ?? []
  const newest = versions.at(-1)
  const stored = version === undefined ? newest : versions.find((each) => each.version === version)
  if (newest === undefined || stored === undefined) throw noSuchQuery(name, version)
  return { stored, newest, versions }
}

/** What may not be known answers as what is not there. */
export function noSuchQuery(name: string, version?: number | undefined): Fault {
  const which = version === undefined ? '' : ` of version ${version}`
  return new Fault('QUERY_NOT_FOUND', {
    message: `There is no query ${name}${which}`,
    details: { query: name, ...(version !== undefined && { version }) },
  })
}

/** Whether callers without a right of the application may ask: as its owner says, or else as its own sources are. */
export function isPublic(
  catalog: Catalog,
  { stored, newest }: Pick<FoundQuery, 'stored' | 'newest'>,
): boolean {
  if (typeof newest.public === 'boolean') return newest.public
  return stored.sources.every(
    (name) => name.includes('::') || findReadable(catalog, name)?.policy.read === 'public',
  )
}
