import { Fault } from '../../base/fault.ts'
import { type Catalog, findReadable } from '../../model/catalog.ts'
import type { StoredQuery } from '../../model/definitions.ts'
import type { Read } from '../../model/policy.ts'
import { readOf } from '../../model/read-level.ts'

/** A version of a query, and the newest: who may ask is the newest one's to say for all of them. */
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

/**
 * Whether callers without a right of the application may ask: as its owner says, private data excepted, or else where
 * each of its own sources is open to strangers. Another application's source is judged for each caller by itself.
 */
export function isPublic(
  catalog: Catalog,
  { stored, newest }: Pick<FoundQuery, 'stored' | 'newest'>,
): boolean {
  if (newest.public === false) return false
  const levels = stored.sources
    .filter((name) => !name.includes('::'))
    .map((name) => levelOf(catalog, name))
  return newest.public === true
    ? !levels.includes('private')
    : levels.every((level) => level === 'public')
}

function levelOf(catalog: Catalog, name: string): Read {
  const source = findReadable(catalog, name)
  return source === undefined ? 'private' : readOf(catalog, source)
}
