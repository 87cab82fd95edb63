import type { Database } from '../../database/database.ts'
import { findExtensionSchema } from '../../database/extensions.ts'
import type { IndexDefinition } from '../../model/definitions.ts'
import { getQueriedTable } from '../../model/encrypted-collections.ts'
import type { Readable } from '../../model/readable.ts'
import type { VectorSearch } from '../../query/compile-nearest.ts'
import type { ListQuery } from '../../query/list-query.ts'
import type { Nearest } from '../../query/nearest.ts'
import { vectorExtension } from '../../query/single-vector.ts'
import type { Tenant } from '../applications/tenants.ts'

/**
 * Finds the ways in which the server can look for what is nearest; undefined if it has no pgvector. It is asked for each
 * search, which takes far longer: an operator may create or drop the extension at any time.
 */
export async function findVectorSearch(
  database: Database,
  tenant: Tenant,
  { readable, query }: { readonly readable: Readable; readonly query: ListQuery },
): Promise<VectorSearch | undefined> {
  const { nearest, history } = query
  if (nearest === undefined) return undefined
  const schema = await findExtensionSchema(database, vectorExtension)
  if (schema === undefined) return undefined
  const index = findVectorIndex(readable, nearest)
  // It has the live rows alone, and the second table of a queryable collection has none.
  const isOfRows = !history && getQueriedTable(readable) === readable.table
  return { schema, isIndexed: index !== undefined && isOfRows && tenant.data.isBuilt(index) }
}

/** Finds the index that has the lists of such a search. */
export function findVectorIndex(
  { indexes }: Readable,
  { path, measure, to }: Nearest,
): IndexDefinition | undefined {
  return indexes.find(
    (index) =>
      index.measure === measure &&
      index.dimensions === to.length &&
      index.fields[0] === path.join('.'),
  )
}
