import type { Catalog } from './catalog.ts'
import type { Definition } from './definition-entry.ts'
import type { PriceRule } from './definitions.ts'

/**
 * Lists what the removals of collections, views and queries change in the price rules: those whose target is then
 * gone end with it. They would price whatever gets its name next, and so sell what its owner never offered. Targets for
 * which time passes were sold stay noted: the buyers have paid for the name.
 */
export function listRuleRemovals(catalog: Catalog, removals: readonly Definition[]): Definition[] {
  const { pricing } = catalog
  const names = listNamesAfter(catalog, removals)
  const rules = pricing.rules.filter(({ target }) => isThere(names, target))
  if (rules.length === pricing.rules.length) return []
  return [{ kind: 'pricing', id: 'pricing', body: { ...pricing, rules } }]
}

type Names = {
  readonly collections: ReadonlySet<string>
  readonly views: ReadonlySet<string>
  readonly queries: ReadonlySet<string>
}

function listNamesAfter(catalog: Catalog, removals: readonly Definition[]): Names {
  const removed = new Set(removals.map(({ kind, id }) => `${kind} ${id}`))
  const collections = [...catalog.collections.values()].filter(
    ({ id }) => !removed.has(`collection ${id}`),
  )
  const views = [...catalog.views.values()].filter(({ view }) => !removed.has(`view ${view.id}`))
  const queries = [...catalog.queries.values()]
    .flat()
    .filter(({ name, version }) => !removed.has(`query ${name}@${version}`))
  return {
    collections: new Set(collections.map(({ name }) => name)),
    views: new Set(views.map(({ view }) => view.name)),
    queries: new Set(queries.map(({ name }) => name)),
  }
}

function isThere(names: Names, target: PriceRule['target']): boolean {
  const { collection = target.api_collection, view, query } = target
  if (collection !== undefined) return names.collections.has(collection)
  return view === undefined ? names.queries.has(query ?? '') : names.views.has(view)
}
