/** Queries of random histories as data, so that they can be made simpler part by part. `query-text.ts` gives the SQL. */
export type Query = Select | Union | Counted

export type Select = {
  readonly kind: 'select'
  /** The columns; none for whole records. With aggregates, the other columns are the groups. */
  readonly columns: readonly Column[]
  readonly distinct: boolean
  readonly from: Relation
  /** The tests, all of which must hold, as in every list of tests. */
  readonly where: readonly Test[]
  /** The tests of the columns, which are the fields of the relation ''. */
  readonly having: readonly Test[]
  readonly page?: Page
}

export type Union = {
  readonly kind: 'union'
  readonly all: boolean
  readonly left: Query
  readonly right: Query
}

/** The rows of a query by their first column, in a form that nothing keeps up; first a window that counts them. */
export type Counted = {
  readonly kind: 'counted'
  readonly query: Query
  readonly as: string
  readonly form?: CountedForm
}

export type CountedForm =
  | 'window'
  | 'series'
  | 'list'
  | 'first of each'
  | 'rollup'
  | 'median'
  | 'once'
  | 'variance'
  | 'lateral'

export type Page = {
  readonly order: readonly Order[]
  readonly limit: number
  readonly offset: number
}

/** The sort key: a column, or a field of whole records. */
export type Order = { readonly by: string; readonly ending: string }

export type Column = { readonly name: string; readonly value: Term | Call }

export type Relation =
  | { readonly kind: 'collection'; readonly name: string; readonly as: string }
  | { readonly kind: 'query'; readonly query: Query; readonly as: string }
  | Named
  | Join

/** A view (`app::v1`), or a common table of the whole query, which is defined so. */
export type Named = {
  readonly kind: 'named'
  readonly name: string
  readonly query: Query
  readonly as: string
}

/** A join; `on` is empty for a cross join. */
export type Join = {
  readonly kind: 'join'
  readonly word: 'CROSS JOIN' | 'JOIN' | 'LEFT JOIN' | 'RIGHT JOIN' | 'FULL JOIN'
  readonly left: Relation
  readonly right: Relation
  readonly on: readonly Test[]
}

export type Term =
  | { readonly kind: 'field'; readonly of: string; readonly name: string }
  | { readonly kind: 'number' | 'text' | 'twice'; readonly of: Term }
  | { readonly kind: 'either'; readonly one: Term; readonly other: Term }

export type Call = { readonly filter: readonly Test[] } & (
  | { readonly kind: 'rows' }
  | { readonly kind: 'truth'; readonly name: 'bool_and' | 'bool_or'; readonly of: Test }
  | {
      readonly kind: 'call'
      readonly name: 'count' | 'count distinct' | 'sum' | 'avg' | 'min' | 'max'
      readonly of: Term
    }
)

export type Test =
  | { readonly kind: 'known'; readonly term: Term }
  /** A comparison with a constant, as JSON. */
  | { readonly kind: 'compare'; readonly term: Term; readonly sign: string; readonly limit: string }
  | { readonly kind: 'all' | 'any'; readonly one: Test; readonly other: Test }
  | { readonly kind: 'not'; readonly test: Test }
  /** A comparison of two terms: equal; or different or in order, as their types allow. */
  | { readonly kind: 'equal' | 'apart'; readonly one: Term; readonly other: Term }

export function isCall(value: Term | Call): value is Call {
  return value.kind === 'rows' || value.kind === 'truth' || value.kind === 'call'
}

/** Says that columns are computed over groups. */
export function isGrouped({ columns }: Select): boolean {
  return columns.some(({ value }) => isCall(value))
}

/** Lists the named queries that a query reads, and those that they read. */
export function listNamed(query: Query): readonly Named[] {
  return listQueries(query).flatMap((each) => [
    ...('name' in each ? [each] : []),
    ...listNamed(each.query),
  ])
}

export function isView({ name }: Named): boolean {
  return name.startsWith('app::')
}

/** Counts the collections that a query reads, each as often as the query names it. */
export function countCollections(query: Query): number {
  const own = query.kind === 'select' ? countCollectionsIn(query.from) : 0
  return listQueries(query).reduce((sum, each) => sum + countCollections(each.query), own)
}

function countCollectionsIn(relation: Relation): number {
  if (relation.kind === 'join')
    return countCollectionsIn(relation.left) + countCollectionsIn(relation.right)
  return relation.kind === 'collection' ? 1 : 0
}

/** Says that a view can be kept by changes: it has no windows, and no limits in what it reads. */
export function canFollow(query: Query, isInner = false): boolean {
  if (query.kind === 'counted') return false
  if (isInner && query.kind === 'select' && query.page !== undefined) return false
  return listQueries(query).every((each) => canFollow(each.query, true))
}

/** Lists the queries from which a query takes its rows. */
function listQueries(query: Query): readonly (Named | { readonly query: Query })[] {
  switch (query.kind) {
    case 'select':
      return listQueriesIn(query.from)
    case 'union':
      return [{ query: query.left }, { query: query.right }]
    case 'counted':
      return [{ query: query.query }]
  }
}

function listQueriesIn(relation: Relation): readonly (Named | { readonly query: Query })[] {
  switch (relation.kind) {
    case 'collection':
      return []
    case 'query':
      return [{ query: relation.query }]
    case 'named':
      return [relation]
    case 'join':
      return [...listQueriesIn(relation.left), ...listQueriesIn(relation.right)]
  }
}
