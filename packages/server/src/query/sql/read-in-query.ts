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

/** Reads `left IN (query)`, both sides converted to one type. */
export function readInQuery(
  test: { readonly left: Expression; readonly query: Query; readonly location: number | undefined },
  place: SqlPlace,
): Expression {
  const { left, query, location } = test
  const { type: from } = requireOneColumn(query, place, location)
  const type = runAt(place, location, () => findCommonType([left.type, from]))
  const argument = runAt(place, location, () => castTo(left, type))
  return Object.freeze({
    kind: 'in-query',
    type: 'boolean',
    argument,
    query: from === type ? query : runAt(place, location, () => withType(query, type, place)),
  })
}

/** Returns the query with its one column converted to the type. */
function withType(query: Query, type: ValueType, place: SqlPlace): Query {
  const id = place.reader.nextId()
  const from = getOutput(query).columns[0]?.type ?? 'null'
  const column: Expression = { kind: 'column', type: from, relation: id, column: 0 }
  return Object.freeze(
    makeSelect({
      columns: [{ name: 'value', expression: castTo(column, type) }],
      from: [{ kind: 'query', id, query }],
      id: place.reader.nextId(),
    }),
  )
}
