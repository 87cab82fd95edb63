import { countSteps } from '../steps.ts'
import { listAllExpressions } from './list-expressions.ts'
import { type Expression, findSubQuery, listParts } from './query.ts'

/** The members that hold the number of a relation, a table or a query. */
const numbered: ReadonlySet<string> = new Set(['id', 'relation', 'table', 'parent'])

/**
 * Returns a text that two expressions share if they are the same. A sub-query that is written twice is the same,
 * although its relations have other numbers each time.
 */
export function makeExpressionKey(expression: Expression): string {
  if (!countWritten(expression).hasQuery) return JSON.stringify(expression)
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

/** Returns a text that two expressions share if they are the same, to the numbers of the relations in them. */
export function makeExactKey(expression: Expression): string {
  countWritten(expression)
  return JSON.stringify(expression)
}

type Content = { readonly parts: number; readonly hasQuery: boolean }

/** Counts what is to be written down, as steps: an expression may have a part in many places. */
function countWritten(expression: Expression): Content {
  const content = countContent(expression)
  countSteps(content.parts * (content.hasQuery ? 12 : 3))
  return content
}

function countContent(expression: Expression): Content {
  const query = findSubQuery(expression)
  let parts = expression.kind === 'one-of' ? expression.values.length : 1
  let hasQuery = query !== undefined
  for (const each of listParts(expression)) add(each)
  if (query !== undefined) for (const each of listAllExpressions(query)) add(each)
  return { parts, hasQuery }

  function add(each: Expression): void {
    const inner = countContent(each)
    parts += inner.parts
    hasQuery ||= inner.hasQuery
  }
}
