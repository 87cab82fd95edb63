import type { ApplicationRecord } from './application.ts'
import type { Readable } from './readable.ts'

/**
 * Identifies a collection or view together with the part of its definition that decides the meaning of a read of
 * it; JSON. Prices, rights and indexes are no part of it: they decide cost, access and speed.
 */
export function getDefinitionVersion(
  { application }: { readonly application: ApplicationRecord },
  readable: Readable,
) {
  const { id } = readable
  switch (readable.kind) {
    case 'collection': {
      const { collection_type, primary_column, schema_definition, api } = readable
      const version = [application.number, id, collection_type, primary_column, schema_definition]
      return api === undefined ? version : [...version, api.url, api.method, api.parameters]
    }
    case 'view': {
      const { query, sources, inner, types, variables } = readable.view
      return [application.number, id, query, sources, inner, types, variables]
    }
  }
}
