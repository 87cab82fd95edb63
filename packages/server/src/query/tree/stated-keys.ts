import { collectUsed, collectUsedInside } from './map-expression.ts'
import {
  type Expression,
  findSubQuery,
  listParts,
  listRelations,
  type Query,
  type Relation,
  type SelectQuery,
} from './query.ts'

/** A field for which every use of a collection must state a value, or a range of values where those count too. */
export type RequiredKey = { readonly field: string; readonly ranges: boolean }
/** Returns the keys of a collection, one of which must be stated; undefined if it has none. */
export type FindKeys = (model: string) => readonly RequiredKey[] | undefined

/**
 * Finds a collection of which some use in the query states none of its keys. A key is stated by a conjunct of
 * WHERE, or of an ON that holds rows back, that compares it with a value, or with a field of records that are known
 * already.
 */
export function findUnstatedModel(query: Query, findKeys: FindKeys): string | undefined {
  return visitQuery(query, findKeys)
}

function visitQuery(query: Query, findKeys: FindKeys): string | undefined {
  for (const table of query.with) {
    const found = visitQuery(table.query, findKeys)
    if (found !== undefined) return found
  }
  if (query.kind === 'set')
    return visitQuery(query.left, findKeys) ?? visitQuery(query.right, findKeys)
  return (
    findUnstated(query, findKeys) ??
    findFirst(innerQueries(query), (one) => visitQuery(one, findKeys))
  )
}

function findFirst<T>(items: readonly T[], find: (item: T) => string | undefined) {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

function innerQueries(query: SelectQuery): readonly Query[] {
  const relations = listRelations(query.from)
  const from = relations.flatMap((each) => (each.kind === 'query' ? [each.query] : []))
  const expressions = [
    query.where,
    query.having,
    ...joinTests(query.from),
    ...query.groupBy,
    ...query.columns.map(({ expression }) => expression),
    ...query.orderBy.map(({ expression }) => expression),
  ]
  return [...from, ...expressions.flatMap((each) => (each === undefined ? [] : queriesIn(each)))]
}

function joinTests(from: readonly Relation[]): readonly (Expression | undefined)[] {
  return from.flatMap((each) =>
    each.kind === 'join' ? [each.on, ...joinTests([each.left, each.right])] : [],
  )
}

function queriesIn(expression: Expression): readonly Query[] {
  const own = findSubQuery(expression)
  return [...(own === undefined ? [] : [own]), ...listParts(expression).flatMap(queriesIn)]
}

/**
 * Finds the first collection of this FROM without a stated key, once all are resolved whose keys follow from
 * others' records.
 */
function findUnstated(query: SelectQuery, findKeys: FindKeys): string | undefined {
  const tests = collectTests(query)
  let waiting = listRelations(query.from).flatMap((each): readonly Waiting[] => {
    const { id } = each
    if (each.kind !== 'collection') return [{ id, uses: collectUsedInside(each) }]
    const keys = findKeys(each.model)
    return keys === undefined ? [] : [{ id, keys, model: each.model }]
  })
  for (;;) {
    const unknown = new Set(waiting.map(({ id }) => id))
    const left = waiting.filter((each) => {
      const { id } = each
      if ('uses' in each) return [...each.uses].some((used) => unknown.has(used))
      const own = tests.get(id) ?? []
      return !each.keys.some((key) =>
        own.some((test) => states(test, { relation: id, key, unknown })),
      )
    })
    if (left.length === waiting.length)
      return left.flatMap((each) => ('keys' in each ? [each.model] : []))[0]
    waiting = left
  }
}

/** A collection that has to be stated, or a relation that is known once those are that it uses. */
type Waiting =
  | { readonly id: number; readonly model: string; readonly keys: readonly RequiredKey[] }
  | { readonly id: number; readonly uses: ReadonlySet<number> }

/**
 * Collects, by relation, the conjuncts that hold its rows back: an outer join's ON does so on one side, or on none.
 */
function collectTests(query: SelectQuery): ReadonlyMap<number, readonly Expression[]> {
  const tests = new Map<number, Expression[]>()
  const note = (from: readonly Relation[], test: Expression | undefined) => {
    if (test === undefined) return
    for (const { id } of listRelations(from))
      tests.set(id, [...(tests.get(id) ?? []), ...conjuncts(test)])
  }
  const visit = (relation: Relation): void => {
    if (relation.kind !== 'join') return
    const { join, left, right, on } = relation
    if (join === 'INNER' || join === 'RIGHT') note([left], on)
    if (join === 'INNER' || join === 'LEFT') note([right], on)
    visit(left)
    visit(right)
  }
  note(query.from, query.where)
  query.from.forEach(visit)
  return tests
}

function conjuncts(expression: Expression): readonly Expression[] {
  return expression.kind === 'and' ? expression.arguments.flatMap(conjuncts) : [expression]
}

type KeyUse = {
  readonly relation: number
  readonly key: RequiredKey
  /** The relations whose records are not known yet; all others are known, including those of outer queries. */
  readonly unknown: ReadonlySet<number>
}

function states(test: Expression, use: KeyUse): boolean {
  const { key } = use
  switch (test.kind) {
    case 'and':
      return test.arguments.some((each) => states(each, use))
    case 'or':
      return test.arguments.every((each) => states(each, use))
    case 'one-of':
      return isKey(test.argument, use)
    case 'in-query':
      return (
        test.arguments.some((each) => isKey(each, use)) &&
        areKnown(collectUsed({ kind: 'exists', type: 'boolean', query: test.query }), use)
      )
    case 'like':
      return (
        key.ranges && !test.ignoreCase && !/^[%_]/.test(test.pattern) && isKey(test.argument, use)
      )
    case 'compare': {
      const { operator, left, right } = test
      const narrows =
        operator === '=' || (key.ranges && !['<>', 'is distinct from'].includes(operator))
      if (!narrows) return false
      return (isKey(left, use) && isKnown(right, use)) || (isKey(right, use) && isKnown(left, use))
    }
    default:
      return false
  }
}

/** Returns true for the field itself, also when converted to the type that the collection's schema declares. */
function isKey(expression: Expression, use: KeyUse): boolean {
  if (expression.kind === 'convert') return isKey(expression.argument, use)
  if (expression.kind !== 'field' || expression.relation !== use.relation) return false
  return expression.path.join('.') === use.key.field
}

function isKnown(expression: Expression, use: KeyUse): boolean {
  return areKnown(collectUsed(expression), use)
}

function areKnown(relations: ReadonlySet<number>, { unknown }: KeyUse): boolean {
  return ![...relations].some((id) => unknown.has(id))
}
