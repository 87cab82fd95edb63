import { isTextLiteral, readBeside } from '../tree/make-expression.ts'
import { type Expression, getOutput, type Query } from '../tree/query.ts'

/**
 * Reads texts that a side of a set operation writes out as numbers, or truth values, if that is what the other side
 * has in their column, as PostgreSQL does. Returns the side as it was if one of its texts is no such value.
 */
export function readLiteralsBeside(side: Query, other: Query): Query {
  return getOutput(other).columns.reduce<Query>((query, { type }, at) => {
    if (type !== 'number' && type !== 'boolean') return query
    return readColumn(query, at, type) ?? query
  }, side)
}

/** Returns the query with the literals of a column read; undefined if not all of them can be. */
function readColumn(query: Query, at: number, type: Expression['type']): Query | undefined {
  if (query.orderBy.length > 0 || query.with.length > 0) return undefined
  if (query.kind === 'set') {
    const [left, right] = [readColumn(query.left, at, type), readColumn(query.right, at, type)]
    if (left === undefined || right === undefined) return undefined
    const columns = query.columns.map((each, place) => (place === at ? { ...each, type } : each))
    return { ...query, left, right, columns }
  }
  const given = query.columns[at]?.expression
  if (given === undefined || !isTextLiteral(given)) return undefined
  const [, read] = readBeside([{ kind: 'constant', type, value: null }, given])
  if (read === undefined || read.type !== type) return undefined
  const columns = query.columns.map((each, place) =>
    place === at ? { ...each, expression: read } : each,
  )
  return { ...query, columns }
}
