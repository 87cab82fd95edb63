import type { ApplicationRecord } from './application.ts'
import type { CollectionState } from './definitions.ts'

/**
 * Identifies a collection or view together with the part of its definition that decides the meaning of a read of
 * it; JSON. Prices, rights and indexes are no part of it: they decide cost, access and speed.
 */
export function getDefinitionVersion(
  { application }: { readonly application: ApplicationRecord },
  state: CollectionState,
) {
  const { id, view, collection_type, primary_column, schema_definition } = state
  if (view === undefined)
    return [application.number, id, collection_type, primary_column, schema_definition]
  const { query, sources, inner, types, variables } = view
  return [application.number, id, query, sources, inner, types, variables]
}
