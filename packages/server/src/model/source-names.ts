import type { Catalog } from './catalog.ts'
import type { Readable } from './readable.ts'

/** A collection or a view, as `app:id`. */
export type SourceName = `${string}:${string}`

export function makeSourceName(app: string, id: string): SourceName {
  return `${app}:${id}`
}

/**
 * Lists what the records of an answer come from: its sources, and what the views among them are made of. The sources of
 * other applications behind a view are among those of the answer already.
 */
export function listSourceNames(
  sources: readonly { readonly tenant: Origin; readonly readable: Readable }[],
): readonly SourceName[] {
  const names = new Set<SourceName>()
  for (const { tenant, readable } of sources) {
    const { app_id: app } = tenant.application
    const add = (id: string): void => {
      names.add(makeSourceName(app, id))
      for (const source of tenant.data.catalog.viewsById.get(id)?.view.sources ?? [])
        if (source.app === app) add(source.id)
    }
    add(readable.id)
  }
  return [...names]
}

type Origin = {
  readonly application: { readonly app_id: string }
  readonly data: { readonly catalog: Catalog }
}
