import { Fault } from '../base/fault.ts'
import type { Catalog } from './catalog.ts'
import type { Definition } from './definition-entry.ts'
import type { StoredView } from './definitions.ts'
import type { KeptQuery } from './stored-query.ts'

/** Lists the application's views that are made of one of these, and of such views in turn, in no order. */
function listDependents(catalog: Catalog, ids: readonly string[]): readonly StoredView[] {
  const found = new Map<string, StoredView>()
  const add = (of: string): void => {
    for (const { view } of catalog.views.values()) {
      const isOn = view.sources.some((source) => source.app === view.app && source.id === of)
      if (!isOn || found.has(view.id)) continue
      found.set(view.id, view)
      add(view.id)
    }
  }
  for (const id of ids) add(id)
  return [...found.values()]
}

/** Lists the versions of predefined queries that read a collection or view by one of these names or ids. */
function listQueriesOn(catalog: Catalog, names: Iterable<string>): readonly KeptQuery[] {
  const wanted = new Set(names)
  const all = [...catalog.queries.values()].flat()
  return all.filter(({ sources }) => sources.some((source) => wanted.has(source)))
}

/** Lists the views that are to replace this one, and are not whole yet. */
export function listReplacements(catalog: Catalog, id: string): readonly StoredView[] {
  return [...catalog.views.values()].flatMap(({ view }) => (view.replaces === id ? [view] : []))
}

/**
 * Refuses (409) to make anything of a view that is being replaced, or of its replacement: one of the two goes, and what
 * was made of it would stay behind without its source.
 */
export function refuseWhileReplaced(
  catalog: Catalog,
  { id, name }: { readonly id: string; readonly name: string },
): void {
  const { replaces = '' } = catalog.views.get(id)?.view ?? {}
  const replacements = listReplacements(catalog, id).map((view) => view.id)
  if (catalog.views.has(replaces)) replacements.push(id)
  if (replacements.length === 0) return
  throw new Fault('CONFLICT', {
    message: `${name} is being replaced by ${replacements.join(', ')}; ask again when that is complete, or delete it by its id`,
    details: { replacements },
  })
}

/**
 * Refuses (409) to replace a view while something needs the ids that end with it: views hold its definition, which must
 * not change behind their backs; grants are for views of others that do; and a query that names it by its id would
 * read whatever gets that name next.
 */
export function refuseNeeded(catalog: Catalog, name: string, ids: readonly string[]): void {
  const views = listNames(listDependents(catalog, ids))
  const queries = listNames(listQueriesOn(catalog, ids))
  const grants = [...catalog.grants.values()].filter(({ source }) => ids.includes(source))
  const grantees = [...new Set(grants.map(({ grantee }) => grantee))]
  const reasons = [
    ...(views.length > 0 ? [`the views ${views.join(', ')} are made of it`] : []),
    ...(queries.length > 0 ? [`the queries ${queries.join(', ')} name it by its id`] : []),
    ...(grantees.length > 0
      ? [
          `it is granted to ${grantees.join(', ')}, whose views are made of it: take the grants back, and give them again for the new one`,
        ]
      : []),
  ]
  if (reasons.length === 0) return
  throw new Fault('CONFLICT', {
    message: `${name} cannot be replaced: ${reasons.join('; ')}`,
    details: {
      ...(views.length > 0 && { views }),
      ...(queries.length > 0 && { queries }),
      ...(grantees.length > 0 && { grantees }),
    },
  })
}

/**
 * Lists the removals that come with the removal of a collection, or of a view with its replacements: grants of it and,
 * if `isCascade`, the views made of it and the versions of queries that read it or them. Without `isCascade` such views
 * and queries forbid it (409).
 */
export function listRemovals(
  catalog: Catalog,
  what: {
    readonly ids: readonly string[]
    readonly name: string
    /** False where something else goes on under the name. */
    readonly isNameFreed: boolean
  },
  isCascade: boolean,
): Definition[] {
  const dependents = listDependents(catalog, what.ids)
  const views = listNames(dependents)
  const ids = new Set([...what.ids, ...dependents.map(({ id }) => id)])
  const names = what.isNameFreed ? [what.name, ...views] : views
  const versions = listQueriesOn(catalog, [...names, ...ids])
  const queries = listNames(versions)
  if (views.length + queries.length > 0 && !isCascade) {
    const words = [...listNeedTexts('view', views), ...listNeedTexts('query', queries)].join(
      ' and by ',
    )
    throw new Fault('CONFLICT', {
      message: `${what.name} is needed by ${words}; delete them first, or send {"cascade": true}`,
      details: { ...(views.length > 0 && { views }), ...(queries.length > 0 && { queries }) },
    })
  }
  const grants = [...catalog.grants.values()].filter(({ source }) => ids.has(source))
  return [
    ...grants.map(({ id }): Definition => ({ kind: 'grant', id, body: undefined })),
    ...versions.map(
      ({ name, version }): Definition => ({
        kind: 'query',
        id: `${name}@${version}`,
        body: undefined,
      }),
    ),
    ...dependents.map(({ id }): Definition => ({ kind: 'view', id, body: undefined })),
  ]
}

function listNames(named: readonly { readonly name: string }[]): readonly string[] {
  return [...new Set(named.map(({ name }) => name))]
}

function listNeedTexts(kind: 'view' | 'query', names: readonly string[]): readonly string[] {
  if (names.length === 0) return []
  const plural = kind === 'view' ? 'views' : 'queries'
  return [`the ${names.length === 1 ? kind : plural} ${names.join(', ')}`]
}
