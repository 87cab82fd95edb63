import { castTo, findCommonType } from '../tree/make-expression.ts'
import {
  type Expression,
  getOutput,
  makeSelect,
  type Query,
  type Typed,
  type ValueType,
} from '../tree/query.ts'
import { refuse, runAt, type SqlPlace } from './sql-reader.ts'

/** Returns the one column of a query that is used as a value or a list of values. */
export function requireOneColumn(
  query: Query,
  place: SqlPlace,
  location: number | undefined,
): Typed {
  const { columns, records } = getOutput(query)
  const [only] = columns
  if (only === undefined || columns.length !== 1 || records.length > 0)
    throw refuse(place, location, 'a sub-query that must give exactly one column')
  return only
}

/** Reads `left IN (query)`, of one value or of a row of several, each side's values converted to one type. */
export function readInQuery(
  test: {
    readonly left: readonly Expression[]
    readonly query: Query
    readonly location: number | undefined
  },
  place: SqlPlace,
): Expression {
  const { left, query, location } = test
  const columns = requireColumns(query, left.length, { place, location })
  const types = columns.map(({ type }, at) =>
    runAt(place, location, () => findCommonType([left[at]?.type ?? 'null', type])),
  )
  const args = left.map((each, at) =>
    runAt(place, location, () => castTo(each, types[at] ?? each.type)),
  )
  const isSame = columns.every(({ type }, at) => type === types[at])
  return Object.freeze({
    kind: 'in-query',
    type: 'boolean',
    arguments: Object.freeze(args),
    query: isSame ? query : runAt(place, location, () => withTypes(query, types, place)),
  })
}

function requireColumns(
  query: Query,
  count: number,
  { place, location }: { readonly place: SqlPlace; readonly location: number | undefined },
): readonly Typed[] {
  if (count === 1) return [requireOneColumn(query, place, location)]
  const { columns, records } = getOutput(query)
  if (columns.length !== count || records.length > 0)
    throw refuse(place, location, `a row of ${count} values in a sub-query that gives others`)
  return columns
}

/** Returns the query with its columns converted to the types. */
function withTypes(query: Query, types: readonly ValueType[], place: SqlPlace): Query {
  const id = place.reader.nextId()
  const columns = getOutput(query).columns.map(({ name, type: from }, at) => {
    const column: Expression = { kind: 'column', type: from, relation: id, column: at }
    return { name, expression: castTo(column, types[at] ?? from) }
  })
  return Object.freeze(
    makeSelect({ columns, from: [{ kind: 'query', id, query }], id: place.reader.nextId() }),
  )
}
