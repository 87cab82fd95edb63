import type { Condition, FieldCondition } from '../../query/condition.ts'
import type { ListQuery } from '../../query/list-query.ts'
import { makePartsPattern } from '../../query/text-parts.ts'

/** The fields that a query looks at, without its values. */
export type QueryShape = {
  /** Fields that an index by value could find by, and that every match satisfies. */
  readonly found: readonly string[]
  /** Fields whose words are searched. */
  readonly searched: readonly string[]
  /** Fields in whose texts a part is looked for. */
  readonly contained: readonly string[]
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

/** Shapes are few; past this number the least recently seen is forgotten. */
const shapesMax = 64
const collectionsMax = 2_000
/** Longer ones, which name hundreds of fields, are not worth their memory; anyone may send them. */
const shapeCharsMax = 1_000

/** One spelling of a shape, with its statistics. Changed in place, since it is noted after every query. */
type ShapeSpelling = {
  readonly shape: QueryShape
  count: number
  totalMs: number
  longestMs: number
  totalRows: number
  seenAt: number
}

type SeenCollection = { readonly spellings: Map<string, ShapeSpelling>; seenAt: number }

/** Statistics of recent queries, by collection and shape, in memory. */
export class QueryStatistics {
  readonly #collections = new Map<string, SeenCollection>()
  /** Counts the queries, to find the least recently seen. */
  #noted = 0

  note(collection: string, query: ListQuery, took: { ms: number; rows: number }): void {
    const key = formatSpelling(query)
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
      spelling = { shape: computeShape(query), ...nothing, seenAt }
      seen.spellings.set(key, spelling)
    }
    spelling.seenAt = seenAt
    spelling.count += 1
    spelling.totalMs += took.ms
    spelling.longestMs = Math.max(spelling.longestMs, took.ms)
    spelling.totalRows += took.rows
  }

  listShapes(collection: string): ObservedShape[] {
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

  /** Returns the statistics of queries like this one. */
  findLike(collection: string, query: ListQuery): ObservedShape | undefined {
    const key = JSON.stringify(computeShape(query))
    return this.listShapes(collection).find(
      ({ count, totalMs, longestMs, totalRows, ...shape }) => JSON.stringify(shape) === key,
    )
  }
}

/** Forgets the least recently seen entry where there is no room for one more. */
function makeRoom<T extends { readonly seenAt: number }>(map: Map<string, T>, max: number): void {
  if (map.size < max) return
  let oldest: [string, T] | undefined
  for (const entry of map)
    if (oldest === undefined || entry[1].seenAt < oldest[1].seenAt) oldest = entry
  if (oldest !== undefined) map.delete(oldest[0])
}

/** Formats a query without its values, as a key that is cheaper than its shape. */
function formatSpelling({ where, sort, history }: ListQuery): string {
  const order = sort === undefined ? '' : ` by ${sort.path.join('.')}`
  return `${formatCondition(where)}${order}${history ? ' of all' : ''}`
}

function formatCondition(condition: Condition): string {
  switch (condition.kind) {
    case 'always':
    case 'never':
      return condition.kind
    case 'all':
    case 'any':
      return `${condition.kind}(${condition.conditions.map(formatCondition).join()})`
    case 'not':
      return `not(${formatCondition(condition.condition)})`
    default: {
      const isFolded = 'ignoreCase' in condition && condition.ignoreCase
      return `${condition.kind}${isFolded ? '*' : ''}${isContained(condition) ? '+' : ''} ${condition.path.join('.')}`
    }
  }
}

export function computeShape(query: ListQuery): QueryShape {
  const found = new Set<string>()
  const searched = new Set<string>()
  const contained = new Set<string>()
  const tested = new Set<string>()
  visit(query.where, { found, searched, contained, tested })
  return {
    found: [...found].sort(),
    searched: [...searched].sort(),
    contained: [...contained].sort(),
    tested: [...tested].sort(),
    sort: query.sort?.path.join('.'),
    history: query.history,
  }
}

type Fields = { readonly [K in 'found' | 'searched' | 'contained' | 'tested']: Set<string> }

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
      for (const each of condition.conditions)
        visit(each, { ...fields, found: fields.tested, contained: fields.tested })
      return
    case 'not':
      visit(condition.condition, makeTested(fields))
      return
    case 'one-of':
    case 'range':
    case 'null':
      fields.found.add(condition.path.join('.'))
      return
    case 'starts':
      if (!condition.ignoreCase) fields.found.add(condition.path.join('.'))
      else fields[isContained(condition) ? 'contained' : 'tested'].add(condition.path.join('.'))
      return
    case 'ends':
    case 'includes':
      fields[isContained(condition) ? 'contained' : 'tested'].add(condition.path.join('.'))
      return
    case 'search':
      fields.searched.add(condition.path.join('.'))
      return
    default:
      fields.tested.add(condition.path.join('.'))
  }
}

function makeTested({ tested }: Fields): Fields {
  return { found: tested, searched: tested, contained: tested, tested }
}

/** Returns true if the condition looks for a part of a text that an index of trigrams finds. */
function isContained(condition: FieldCondition): boolean {
  const { kind } = condition
  if (kind !== 'starts' && kind !== 'ends' && kind !== 'includes') return false
  const part = kind === 'includes' ? condition.value : condition.text
  return typeof part === 'string' && makePartsPattern([part]) !== undefined
}
