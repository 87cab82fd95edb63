import { countSteps } from '../steps.ts'
import { isTextLiteral, makeConstant, makeDocument, readBeside } from '../tree/make-expression.ts'
import { getOutput, type Query, type Typed } from '../tree/query.ts'

/**
 * Reads texts that a side of a set operation writes out as numbers, truth values or JSON, if that is what the other
 * side has in their column, as PostgreSQL does. Returns the side as it was if one of its texts is no such value.
 */
export function readLiteralsBeside(side: Query, other: Query): Query {
  return getOutput(other).columns.reduce<Query>((query, { type, held }, at) => {
    const isRead = type === 'number' || type === 'boolean' || held === 'document'
    return isRead ? (readColumn(query, at, { type, held }) ?? query) : query
  }, side)
}

/** Returns the query with the literals of a column read; undefined if not all of them can be. */
function readColumn(query: Query, at: number, like: Typed): Query | undefined {
  countSteps(2)
  if (query.orderBy.length > 0 || query.with.length > 0) return undefined
  if (query.kind === 'set') {
    // In a chain the right side is one SELECT, which mostly tells that nothing is to be read.
    const right = readColumn(query.right, at, like)
    const left = right && readColumn(query.left, at, like)
    if (left === undefined || right === undefined) return undefined
    const columns = query.columns.map((each, place) => (place === at ? { ...each, ...like } : each))
    return { ...query, left, right, columns }
  }
  const given = query.columns[at]?.expression
  if (given === undefined || !isTextLiteral(given)) return undefined
  const read =
    like.held === 'document'
      ? makeDocument(given.value)
      : readBeside([makeConstant(like.type, null), given])[1]
  if (read === undefined || read.type !== like.type) return undefined
  const columns = query.columns.map((each, place) =>
    place === at ? { ...each, expression: read } : each,
  )
  return { ...query, columns }
}
