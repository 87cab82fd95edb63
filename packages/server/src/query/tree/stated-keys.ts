import {
  type Expression,
  partsOf,
  type Query,
  queryOf,
  type Relation,
  relationsOf,
  type SelectQuery,
} from './query.ts'

/** A field of which every use of a collection shall state a value, or a range of values where those count too. */
export type Key = { readonly field: string; readonly ranges: boolean }
/** The keys of a collection, one of which must be stated; undefined where it has none. */
export type KeysOf = (model: string) => readonly Key[] | undefined

/**
 * The collection of which some use in the query states none of its keys: by a conjunct of WHERE, or of ON where that
 * holds rows back, that compares the key with a value, or with a field of records that are known already.
 */
export function unstatedModel(query: Query, keysOf: KeysOf): string | undefined {
  return visitQuery(query, keysOf)
}

function visitQuery(query: Query, keysOf: KeysOf): string | undefined {
  for (const table of query.with) {
    const found = visitQuery(table.query, keysOf)
    if (found !== undefined) return found
  }
  if (query.kind === 'set') return visitQuery(query.left, keysOf) ?? visitQuery(query.right, keysOf)
  return unstatedOf(query, keysOf) ?? firstOf(innerQueries(query), (one) => visitQuery(one, keysOf))
}

function firstOf<T>(items: readonly T[], find: (item: T) => string | undefined) {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

function innerQueries(query: SelectQuery): readonly Query[] {
  const relations = relationsOf(query.from)
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
  const own = queryOf(expression)
  return [...(own === undefined ? [] : [own]), ...partsOf(expression).flatMap(queriesIn)]
}

/** The first collection of this FROM without a key, once all are found whose keys follow from others' records. */
function unstatedOf(query: SelectQuery, keysOf: KeysOf): string | undefined {
  const tests = testsOf(query)
  let waiting = relationsOf(query.from).flatMap((each) => {
    const keys = each.kind === 'collection' ? keysOf(each.model) : undefined
    return each.kind === 'collection' && keys !== undefined ? [{ ...each, keys }] : []
  })
  for (;;) {
    const unknown = new Set(waiting.map(({ id }) => id))
    const left = waiting.filter(({ id, keys }) => {
      const own = tests.get(id) ?? []
      return !keys.some((key) => own.some((test) => states(test, { relation: id, key, unknown })))
    })
    if (left.length === waiting.length) return left[0]?.model
    waiting = left
  }
}

/** By relation, the conjuncts that hold its rows back: an outer join's ON does so on one side, or on none. */
function testsOf(query: SelectQuery): ReadonlyMap<number, readonly Expression[]> {
  const tests = new Map<number, Expression[]>()
  const note = (from: readonly Relation[], test: Expression | undefined) => {
    if (test === undefined) return
    for (const { id } of relationsOf(from))
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

type Wanted = {
  readonly relation: number
  readonly key: Key
  /** Relations whose records are not known; others' are, also those of queries around. */
  readonly unknown: ReadonlySet<number>
}

function states(test: Expression, wanted: Wanted): boolean {
  const { key } = wanted
  switch (test.kind) {
    case 'and':
      return test.arguments.some((each) => states(each, wanted))
    case 'or':
      return test.arguments.every((each) => states(each, wanted))
    case 'one-of':
    case 'in-query':
      return isKey(test.argument, wanted)
    case 'like':
      return (
        key.ranges &&
        !test.ignoreCase &&
        !/^[%_]/.test(test.pattern) &&
        isKey(test.argument, wanted)
      )
    case 'compare': {
      const { operator, left, right } = test
      const narrows =
        operator === '=' || (key.ranges && !['<>', 'is distinct from'].includes(operator))
      if (!narrows) return false
      return (
        (isKey(left, wanted) && isKnown(right, wanted)) ||
        (isKey(right, wanted) && isKnown(left, wanted))
      )
    }
    default:
      return false
  }
}

/** The field itself, be it as the type that the collection's schema says. */
function isKey(expression: Expression, wanted: Wanted): boolean {
  if (expression.kind === 'convert') return isKey(expression.argument, wanted)
  if (expression.kind !== 'field' || expression.relation !== wanted.relation) return false
  return expression.path.join('.') === wanted.key.field
}

function isKnown(expression: Expression, wanted: Wanted): boolean {
  if ('relation' in expression && wanted.unknown.has(expression.relation)) return false
  return partsOf(expression).every((part) => isKnown(part, wanted))
}
