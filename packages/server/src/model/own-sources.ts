import { type Catalog, findReadableById } from './catalog.ts'
import type { StoredView } from './definitions.ts'
import type { Readable } from './readable.ts'

/** A source of a view's own application, with the name that the definition gives it. */
export type OwnSource = { readonly model: string; readonly readable: Readable }

/**
 * Resolves the sources of a view that belong to its own application; 'gone' where one of them, or one behind them, is
 * not there any more. The sources alone say who may read the view, what it costs and whose records are behind it, so a
 * view that has lost one is neither public nor free, and nobody reads or buys it.
 */
export function resolveOwnSources(
  catalog: Catalog,
  { app, sources }: StoredView,
): readonly OwnSource[] | 'gone' {
  const own: OwnSource[] = []
  for (const { app: owner, id, model } of sources) {
    if (owner !== app) continue
    const readable = findReadableById(catalog, id)
    if (readable === undefined || hasLostSource(catalog, readable)) return 'gone'
    own.push({ model, readable })
  }
  return own
}

/** Returns true for a view that has lost a source of its own application. */
export function hasLostSource(catalog: Catalog, readable: Readable): boolean {
  return readable.kind === 'view' && resolveOwnSources(catalog, readable.view) === 'gone'
}
