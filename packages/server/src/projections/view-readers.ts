import type { Queryable } from '../database/database.ts'
import type { Catalog } from '../model/catalog.ts'
import type { StoredView } from '../model/definitions.ts'
import { distrust } from './view-state.ts'

/** Returns true if the view reads the collection, which is of the view's own application. */
export function hasOwnSource({ app, reads }: StoredView, collection: string): boolean {
  return reads.some((source) => source.app === app && source.id === collection)
}

/** Lists the views that read some collections of an application. */
export function listReaders(
  catalog: Catalog,
  { app, collections }: { readonly app: string; readonly collections: ReadonlySet<string> },
): readonly StoredView[] {
  const readers = [...catalog.views.values()].filter(({ view }) =>
    view.reads.some((source) => source.app === app && collections.has(source.id)),
  )
  return readers.map(({ view }) => view)
}

/**
 * Has views of the collection made anew: a field that becomes unique changes which old versions replaced which, so
 * their rows no longer match their definitions.
 */
export async function distrustViews(
  tx: Queryable,
  schema: string,
  { catalog, collection }: { catalog: Catalog; collection: string },
): Promise<void> {
  const views = [...catalog.views.values()].filter(({ view }) => hasOwnSource(view, collection))
  await distrust(tx, schema, { views: views.map(({ view }) => view.id) })
}
