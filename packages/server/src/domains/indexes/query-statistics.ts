import type { Condition } from '../../query/condition.ts'
import type { ListQuery } from '../../query/list-query.ts'

/** What a query looks at, without its values. */
export type QueryShape = {
  /** Fields that an index by value could find by, and that every match satisfies. */
  readonly found: readonly string[]
  /** Fields whose words are searched. */
  readonly searched: readonly string[]
  /** Other fields of conditions, for which each record is looked at. */
  readonly tested: readonly string[]
  readonly sort: string | undefined
  readonly history: boolean
}

/** Queries of one shape on one collection. */
export type ObservedShape = QueryShape & {
  readonly count: number
  readonly totalMs: number
  readonly longestMs: number
  readonly totalRows: number
}

/** Shapes are few; past this the one unseen the longest is forgotten. */
const shapesMax = 64
const collectionsMax = 2_000
/** Longer ones, which name hundreds of fields, are not worth their memory; anyone may send them. */
const shapeCharsMax = 1_000

/** What was asked of late, by collection and shape, in memory. */
export class QueryStatistics {
  readonly #collections = new Map<string, Map<string, ObservedShape>>()

  note(collection: string, query: ListQuery, took: { ms: number; rows: number }): void {
    const shape = shapeOf(query)
    const key = JSON.stringify(shape)
    if (key.length > shapeCharsMax) return
    const shapes = newest(this.#collections, collection, collectionsMax) ?? new Map()
    this.#collections.set(collection, shapes)
    const before: ObservedShape | undefined = newest(shapes, key, shapesMax)
    shapes.set(key, {
      ...shape,
      count: (before?.count ?? 0) + 1,
      totalMs: (before?.totalMs ?? 0) + took.ms,
      longestMs: Math.max(before?.longestMs ?? 0, took.ms),
      totalRows: (before?.totalRows ?? 0) + took.rows,
    })
  }

  of(collection: string): ObservedShape[] {
    return [...(this.#collections.get(collection)?.values() ?? [])]
  }

  /** Queries like this one. */
  like(collection: string, query: ListQuery): ObservedShape | undefined {
    return this.#collections.get(collection)?.get(JSON.stringify(shapeOf(query)))
  }
}

/** What a map holds, taken out, so that it comes last when it is put in again; makes room where there is none. */
function newest<T>(map: Map<string, T>, key: string, max: number): T | undefined {
  const found = map.get(key)
  map.delete(key)
  const [oldest] = map.keys()
  if (map.size >= max && oldest !== undefined) map.delete(oldest)
  return found
}

export function shapeOf(query: ListQuery): QueryShape {
  const found = new Set<string>()
  const searched = new Set<string>()
  const tested = new Set<string>()
  visit(query.where, { found, searched, tested })
  return {
    found: [...found].sort(),
    searched: [...searched].sort(),
    tested: [...tested].sort(),
    sort: query.sort?.path.join('.'),
    history: query.history,
  }
}

type Fields = { readonly [K in 'found' | 'searched' | 'tested']: Set<string> }

function visit(condition: Condition, fields: Fields): void {
  switch (condition.kind) {
    case 'always':
    case 'never':
      return
    case 'all':
      for (const each of condition.conditions) visit(each, fields)
      return
    case 'any':
      // No index finds all alternatives at once.
      for (const each of condition.conditions) visit(each, { ...fields, found: fields.tested })
      return
    case 'not':
      visit(condition.condition, { ...fields, found: fields.tested, searched: fields.tested })
      return
    case 'one-of':
    case 'range':
    case 'null':
      fields.found.add(condition.path.join('.'))
      return
    case 'starts':
      fields[condition.ignoreCase ? 'tested' : 'found'].add(condition.path.join('.'))
      return
    case 'search':
      fields.searched.add(condition.path.join('.'))
      return
    default:
      fields.tested.add(condition.path.join('.'))
  }
}
