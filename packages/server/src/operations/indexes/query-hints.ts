import type { CollectionState } from '../../model/definitions.ts'
import type { ListQuery } from '../../query/list-query.ts'
import type { Tables } from '../../services/applications/tenancy.ts'
import { shapeOf } from '../../services/indexes/query-statistics.ts'
import type { Question } from '../../services/reading/answer-query.ts'
import { missingFields, servingIndex } from './index-advice.ts'

/** What is known of a planned query and its application. */
export type Planned = {
  readonly tables: Tables
  /** The collection's indexes that the plan uses. */
  readonly usedOf: (collection: CollectionState) => readonly string[]
  readonly documentsOf: (collection: CollectionState) => number
}

/** Fewer records are read from end to end sooner than by an index. */
export const smallMax = 1_000
const withoutLimit = 'Without a limit every match is read; give one, and sort by an indexed field.'

/** Advice on a list without joins. */
export function hintsOfList(
  query: ListQuery,
  collection: CollectionState,
  { tables, usedOf, documentsOf }: Planned,
): string[] {
  const shape = shapeOf(query)
  if (shape.history) return ['History is read without any index; name the record by its key.']
  const hints: string[] = []
  const usesNone = usedOf(collection).length === 0
  const missing = missingFields(shape, collection)
  if (missing !== undefined && usesNone)
    hints.push(
      `An index of ${missing.type} on ${missing.fields.join(', ')} would serve this query.`,
    )
  const serving = servingIndex(shape, collection)
  if (serving !== undefined && !tables.data.isBuilt(serving))
    hints.push(`The index ${serving.name} is being built; until then every record is looked at.`)
  else if (serving !== undefined && usesNone)
    hints.push(
      documentsOf(collection) < smallMax
        ? 'The collection is so small that reading all of it is the fastest.'
        : `So many records match that reading all of them is faster than the index ${serving.name}.`,
    )
  if (shape.tested.length > 0)
    hints.push(
      `The conditions on ${shape.tested.join(', ')} are tested record by record; is, in, comparisons, startsWith and search use an index.`,
    )
  if (query.limit === undefined) hints.push(withoutLimit)
  return hints
}

/** Advice on joins, groups and SQL: of each collection that is filtered without an index, what one could be on. */
export function hintsOfSources(question: Question, planned: Planned): string[] {
  const filtered = new Map<CollectionState, Set<string>>()
  for (const { collection, used } of question.sources) {
    const fields = filtered.get(collection) ?? new Set()
    filtered.set(collection, new Set([...fields, ...used.filter]))
  }
  const hints = [...filtered].flatMap(([collection, fields]) =>
    hintOf(collection, [...fields].sort(), planned),
  )
  return question.limit === undefined && question.isRows ? [...hints, withoutLimit] : hints
}

function hintOf(
  collection: CollectionState,
  fields: readonly string[],
  { tables, usedOf, documentsOf }: Planned,
): string[] {
  if (fields.length === 0 || usedOf(collection).length > 0) return []
  const { name } = collection
  if (documentsOf(collection) < smallMax)
    return [`${name} is so small that reading all of it is the fastest.`]
  const leading = collection.indexes.find((index) => fields.includes(index.fields[0] ?? ''))
  if (leading === undefined && !fields.includes(collection.primary_column))
    return [
      `Every record of ${name} is read; an index on ${fields.slice(0, 4).join(', ')} may help.`,
    ]
  if (leading !== undefined && !tables.data.isBuilt(leading))
    return [`The index ${leading.name} of ${name} is being built; until then every record is read.`]
  return [
    `Every record of ${name} is read: too many match for an index, or the conditions on ${fields.join(', ')} use none.`,
  ]
}
