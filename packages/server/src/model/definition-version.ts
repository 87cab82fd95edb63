import type { ApplicationRecord } from './application.ts'
import type { CollectionState } from './definitions.ts'

/**
 * Names a collection or view and what in its definition decides what a question about it means; JSON. Prices, rights
 * and indexes are no part of it: they say what it costs, who may ask, and how fast it is.
 */
export function versionOf(
  { application }: { readonly application: ApplicationRecord },
  state: CollectionState,
) {
  const { id, view, collection_type, primary_column, schema_definition } = state
  if (view === undefined)
    return [application.number, id, collection_type, primary_column, schema_definition]
  const { query, sources, inner, types, variables } = view
  return [application.number, id, query, sources, inner, types, variables]
}
