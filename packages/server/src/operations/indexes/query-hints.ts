import { findPrimaryColumn, type Readable } from '../../model/readable.ts'
import type { ListQuery } from '../../query/list-query.ts'
import type { Nearest } from '../../query/nearest.ts'
import type { Tables } from '../../services/applications/tenants.ts'
import { computeShape } from '../../services/indexes/query-statistics.ts'
import type { ReadRequest } from '../../services/reading/answer-query.ts'
import { findVectorIndex } from '../../services/reading/find-vector-search.ts'
import { findMissingIndex, findServingIndex } from './index-advice.ts'

/** The facts about an explained query and its application. */
export type ExplainedQuery = {
  readonly tables: Tables
  /** The collection's indexes that the plan uses. */
  readonly listUsedIndexes: (collection: Readable) => readonly string[]
  readonly countDocuments: (collection: Readable) => number
}

/** Reading fewer records than this from end to end is faster than an index. */
export const smallMax = 1_000
const withoutLimit = 'Without a limit every match is read; give one, and sort by an indexed field.'

/** Advises on a list without joins. */
export function adviseOnList(
  query: ListQuery,
  collection: Readable,
  { tables, listUsedIndexes, countDocuments }: ExplainedQuery,
): string[] {
  const shape = computeShape(query)
  if (shape.history) return ['History is read without any index; name the record by its key.']
  if (query.nearest !== undefined) return [adviseOnNearest(query.nearest, collection, tables)]
  const hints: string[] = []
  const usesNone = listUsedIndexes(collection).length === 0
  const missing = findMissingIndex(shape, collection)
  if (missing !== undefined && usesNone)
    hints.push(
      `An index of ${missing.type} on ${missing.fields.join(', ')} would serve this query.`,
    )
  const serving = findServingIndex(shape, collection)
  if (serving !== undefined && !tables.data.isBuilt(serving))
    hints.push(`The index ${serving.name} is being built; until then every record is looked at.`)
  else if (serving !== undefined && usesNone)
    hints.push(
      countDocuments(collection) < smallMax
        ? 'The collection is so small that reading all of it is the fastest.'
        : `So many records match that reading all of them is faster than the index ${serving.name}.`,
    )
  if (shape.tested.length > 0)
    hints.push(
      `The conditions on ${shape.tested.join(', ')} are tested record by record; is, in, comparisons, startsWith and search use an index, and includes one of type trigram.`,
    )
  if (query.limit === undefined) hints.push(withoutLimit)
  return hints
}

const exactly =
  'Nearest neighbours are found exactly: the distance of every record that find leaves is computed. Conditions that an index serves make it faster'

function adviseOnNearest(nearest: Nearest, collection: Readable, { data }: Tables): string {
  const index = findVectorIndex(collection, nearest)
  const { length } = nearest.to
  if (index === undefined)
    return `${exactly}; so do an index of type vector on ${nearest.path.join('.')}, with dimensions ${length} and measure ${nearest.measure}, and "approximate": true.`
  if (!nearest.approximate)
    return `${exactly}; so does "approximate": true, by the index ${index.name}.`
  return data.isBuilt(index)
    ? `The index ${index.name} chooses the records, and may leave some of the nearest out.`
    : `${exactly}. The index ${index.name} is being built.`
}

/**
 * Advises on joins, groups and SQL: for each collection that is filtered without an index, names the fields that
 * one could have.
 */
export function adviseOnSources(request: ReadRequest, planned: ExplainedQuery): string[] {
  const filtered = new Map<Readable, Set<string>>()
  for (const { readable, used } of request.sources) {
    const fields = filtered.get(readable) ?? new Set()
    filtered.set(readable, new Set([...fields, ...used.filter]))
  }
  const hints = [...filtered].flatMap(([collection, fields]) =>
    adviseOnCollection(collection, [...fields].sort(), planned),
  )
  return request.limit === undefined && request.isRows ? [...hints, withoutLimit] : hints
}

function adviseOnCollection(
  collection: Readable,
  fields: readonly string[],
  { tables, listUsedIndexes, countDocuments }: ExplainedQuery,
): string[] {
  if (fields.length === 0 || listUsedIndexes(collection).length > 0) return []
  const { name } = collection
  if (countDocuments(collection) < smallMax)
    return [`${name} is so small that reading all of it is the fastest.`]
  const leading = collection.indexes.find((index) => fields.includes(index.fields[0] ?? ''))
  if (leading === undefined && !fields.includes(findPrimaryColumn(collection) ?? ''))
    return [
      `Every record of ${name} is read; an index on ${fields.slice(0, 4).join(', ')} may help.`,
    ]
  if (leading !== undefined && !tables.data.isBuilt(leading))
    return [`The index ${leading.name} of ${name} is being built; until then every record is read.`]
  return [
    `Every record of ${name} is read: too many match for an index, or the conditions on ${fields.join(', ')} use none.`,
  ]
}
