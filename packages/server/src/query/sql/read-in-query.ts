import { casted, commonType } from '../tree/make-expression.ts'
import { type Expression, outputOf, type Query, selectOf, type ValueType } from '../tree/query.ts'
import { at, type Place, refuse } from './sql-reader.ts'

/** The one column of a query that is used as a value or a list of values. */
export function inColumn(
  query: Query,
  place: Place,
  location: number | undefined,
): { readonly type: ValueType } {
  const { columns, records } = outputOf(query)
  const [only] = columns
  if (only === undefined || columns.length !== 1 || records.length > 0)
    throw refuse(place, location, 'a sub-query that must give exactly one column')
  return only
}

/** `left IN (query)`, both sides made into one type. */
export function readInQuery(
  test: { readonly left: Expression; readonly query: Query; readonly location: number | undefined },
  place: Place,
): Expression {
  const { left, query, location } = test
  const { type: from } = inColumn(query, place, location)
  const type = at(place, location, () => commonType([left.type, from]))
  const argument = at(place, location, () => casted(left, type))
  return Object.freeze({
    kind: 'in-query',
    type: 'boolean',
    argument,
    query: from === type ? query : at(place, location, () => withType(query, type, place)),
  })
}

/** The query with its one column made into the type. */
function withType(query: Query, type: ValueType, place: Place): Query {
  const id = place.reader.nextId()
  const from = outputOf(query).columns[0]?.type ?? 'null'
  const column: Expression = { kind: 'column', type: from, relation: id, column: 0 }
  return Object.freeze(
    selectOf({
      columns: [{ name: 'value', expression: casted(column, type) }],
      from: [{ kind: 'query', id, query }],
      id: place.reader.nextId(),
    }),
  )
}
