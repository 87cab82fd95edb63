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

/** One way to write a shape, and what was seen of it. Changed in place: it is noted after every query. */
type Spelling = {
  readonly shape: QueryShape
  count: number
  totalMs: number
  longestMs: number
  totalRows: number
  seenAt: number
}

type Seen = { readonly spellings: Map<string, Spelling>; seenAt: number }

/** What was asked of late, by collection and shape, in memory. */
export class QueryStatistics {
  readonly #collections = new Map<string, Seen>()
  /** Counts the queries, to tell what was unseen the longest. */
  #noted = 0

  note(collection: string, query: ListQuery, took: { ms: number; rows: number }): void {
    const key = spellingOf(query)
    if (key.length > shapeCharsMax) return
    const seenAt = ++this.#noted
    let seen = this.#collections.get(collection)
    if (seen === undefined) {
      makeRoom(this.#collections, collectionsMax)
      seen = { spellings: new Map(), seenAt }
      this.#collections.set(collection, seen)
    }
    seen.seenAt = seenAt
    let spelling = seen.spellings.get(key)
    if (spelling === undefined) {
      makeRoom(seen.spellings, shapesMax)
      const nothing = { count: 0, totalMs: 0, longestMs: 0, totalRows: 0 }
      spelling = { shape: shapeOf(query), ...nothing, seenAt }
      seen.spellings.set(key, spelling)
    }
    spelling.seenAt = seenAt
    spelling.count += 1
    spelling.totalMs += took.ms
    spelling.longestMs = Math.max(spelling.longestMs, took.ms)
    spelling.totalRows += took.rows
  }

  of(collection: string): ObservedShape[] {
    const shapes = new Map<string, ObservedShape>()
    for (const { shape, ...more } of this.#collections.get(collection)?.spellings.values() ?? []) {
      const key = JSON.stringify(shape)
      const { count = 0, totalMs = 0, longestMs = 0, totalRows = 0 } = shapes.get(key) ?? {}
      shapes.set(key, {
        ...shape,
        count: count + more.count,
        totalMs: totalMs + more.totalMs,
        longestMs: Math.max(longestMs, more.longestMs),
        totalRows: totalRows + more.totalRows,
      })
    }
    return [...shapes.values()]
  }

  /** Queries like this one. */
  like(collection: string, query: ListQuery): ObservedShape | undefined {
    const key = JSON.stringify(shapeOf(query))
    return this.of(collection).find(
      ({ count, totalMs, longestMs, totalRows, ...shape }) => JSON.stringify(shape) === key,
    )
  }
}

/** Forgets what was unseen the longest where there is no room for one more. */
function makeRoom<T extends { readonly seenAt: number }>(map: Map<string, T>, max: number): void {
  if (map.size < max) return
  let oldest: [string, T] | undefined
  for (const entry of map)
    if (oldest === undefined || entry[1].seenAt < oldest[1].seenAt) oldest = entry
  if (oldest !== undefined) map.delete(oldest[0])
}

/** Queries that are written alike, their values aside: cheaper to tell than their shape. */
function spellingOf({ where, sort, history }: ListQuery): string {
  const order = sort === undefined ? '' : ` by ${sort.path.join('.')}`
  return `${conditionSpelling(where)}${order}${history ? ' of all' : ''}`
}

function conditionSpelling(condition: Condition): string {
  switch (condition.kind) {
    case 'always':
    case 'never':
      return condition.kind
    case 'all':
    case 'any':
      return `${condition.kind}(${condition.conditions.map(conditionSpelling).join()})`
    case 'not':
      return `not(${conditionSpelling(condition.condition)})`
    default: {
      const isFolded = 'ignoreCase' in condition && condition.ignoreCase
      return `${condition.kind}${isFolded ? '*' : ''} ${condition.path.join('.')}`
    }
  }
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
