import { type Expression, findSubQuery, listParts } from './query.ts'

/** The members that hold the number of a relation, a table or a query. */
const numbered: ReadonlySet<string> = new Set(['id', 'relation', 'table', 'parent'])

/**
 * Returns a text that two expressions share if they are the same. A sub-query that is written twice is the same,
 * although its relations have other numbers each time.
 */
export function makeExpressionKey(expression: Expression): string {
  if (!hasSubQuery(expression)) return JSON.stringify(expression)
  const places = new Map<unknown, string>()
  JSON.stringify(expression, (name, value: unknown) => {
    // Only what a sub-query itself has is numbered: a relation around it is the same in both.
    if (name === 'id' && !places.has(value)) places.set(value, `own ${places.size}`)
    return value
  })
  return JSON.stringify(expression, (name, value: unknown) => {
    if (numbered.has(name)) return places.get(value) ?? value
    const isRecords = name === 'records' && Array.isArray(value)
    return isRecords ? value.map((each: unknown) => places.get(each) ?? each) : value
  })
}

/** Returns true if a query stands in the expression. */
function hasSubQuery(expression: Expression): boolean {
  return findSubQuery(expression) !== undefined || listParts(expression).some(hasSubQuery)
}
