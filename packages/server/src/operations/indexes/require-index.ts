import { Fault } from '../../base/fault.ts'
import type { IndexDefinition } from '../../model/definitions.ts'
import type { Readable } from '../../model/readable.ts'
import { isPlain } from '../../projections/index-ddl.ts'
import { requireCollectionOrView } from '../../services/access/find-sources.ts'
import type { Tenant } from '../../services/applications/tenants.ts'

export type IndexLookup = { readonly collection: Readable; readonly index: IndexDefinition }

/** The index that the path of a request names. */
export function requireNamedIndex(
  tenant: Tenant,
  params: { readonly collection: string; readonly name: string },
): IndexLookup {
  return requireIndex([requireCollectionOrView(tenant, params.collection)], params.name)
}

/**
 * An index by its id, its name, or one of the names that public clients make of collection and field:
 * they create `{collection}_{field}_idx` and delete `{collection}_{field}_index`. Two that fit alike are a conflict.
 */
export function requireIndex(collections: Iterable<Readable>, name: string): IndexLookup {
  const all = [...collections].flatMap((collection) =>
    collection.indexes.map((index) => ({ collection, index })),
  )
  const derived = all.filter(({ collection, index }) =>
    listDerivedNames(collection, index).includes(name),
  )
  const ways = [
    all.filter(({ index }) => index.id === name),
    all.filter(({ index }) => index.name === name),
    derived.filter(({ index }) => isPlain(index)),
    derived,
  ]
  const [found, other] = ways.find((fitting) => fitting.length > 0) ?? []
  if (found === undefined)
    throw new Fault('INDEX_NOT_FOUND', { message: `There is no index ${name}` })
  if (other === undefined) return found
  const ids = [found, other].map(({ collection, index }) => `${index.id} of ${collection.name}`)
  throw new Fault('CONFLICT', {
    message: `${name} may be ${ids.join(' or ')}; name the index by its id`,
    details: { indexes: [found.index.id, other.index.id] },
  })
}

function listDerivedNames(collection: Readable, index: IndexDefinition): string[] {
  const fields = index.fields.join('_')
  const spellings = new Set([fields, index.fields.join('.'), fields.replaceAll('.', '_')])
  return [...spellings].flatMap((one) => [
    `${collection.name}_${one}_index`,
    `${collection.name}_${one}_idx`,
  ])
}
