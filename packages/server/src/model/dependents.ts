import { Fault } from '../base/fault.ts'
import type { Catalog } from './catalog.ts'
import type { Definition } from './definition-entry.ts'
import type { StoredView } from './definitions.ts'
import type { KeptQuery } from './stored-query.ts'

/** Lists the application's views that are made of a collection or view, and of such views in turn, in no order. */
export function listDependents(catalog: Catalog, id: string): readonly StoredView[] {
  const found = new Map<string, StoredView>()
  const add = (of: string): void => {
    for (const { view } of catalog.views.values()) {
      const isOn = view.sources.some((source) => source.app === view.app && source.id === of)
      if (!isOn || found.has(view.id)) continue
      found.set(view.id, view)
      add(view.id)
    }
  }
  add(id)
  return [...found.values()]
}

/** Lists the versions of predefined queries that read a collection or view of one of these names. */
export function listQueriesOn(catalog: Catalog, names: ReadonlySet<string>): readonly KeptQuery[] {
  const all = [...catalog.queries.values()].flat()
  return all.filter(({ sources }) => sources.some((source) => names.has(source)))
}

/**
 * Lists the removals that come with the removal of a collection or view: grants of it and, if `isCascade`, the
 * views made of it and the versions of queries that read it or them. Without `isCascade` such views and queries
 * forbid it (409).
 */
export function listRemovals(
  catalog: Catalog,
  what: { readonly id: string; readonly name: string },
  isCascade: boolean,
): Definition[] {
  const dependents = listDependents(catalog, what.id)
  const views = [...new Set(dependents.map(({ name }) => name))]
  const versions = listQueriesOn(catalog, new Set([what.name, ...views]))
  const queries = [...new Set(versions.map(({ name }) => name))]
  if (views.length + queries.length > 0 && !isCascade) {
    const words = [...listNeedTexts('view', views), ...listNeedTexts('query', queries)].join(
      ' and by ',
    )
    throw new Fault('CONFLICT', {
      message: `${what.name} is needed by ${words}; delete them first, or send {"cascade": true}`,
      details: { ...(views.length > 0 && { views }), ...(queries.length > 0 && { queries }) },
    })
  }
  const ids = new Set([what.id, ...dependents.map(({ id }) => id)])
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

function listNeedTexts(kind: 'view' | 'query', names: readonly string[]): readonly string[] {
  if (names.length === 0) return []
  const plural = kind === 'view' ? 'views' : 'queries'
  return [`the ${names.length === 1 ? kind : plural} ${names.join(', ')}`]
}
