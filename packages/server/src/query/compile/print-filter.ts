import { printTextExpression } from '../index-key.ts'
import { listLikeParts, makePartsPattern, printPartsTest } from '../text-parts.ts'
import type { Expression } from '../tree/query.ts'
import { type Printer, printExpression } from './print-expression.ts'

/**
 * Prints a condition of which only the truth counts (NULL is as good as false), as in WHERE and ON: beside LIKE it
 * puts what a trigram index serves of it.
 */
export function printFilter(expression: Expression, printer: Printer): string {
  switch (expression.kind) {
    case 'and':
    case 'or': {
      const parts = expression.arguments.map((each) => printFilter(each, printer))
      return `(${parts.join(expression.kind === 'and' ? '\n AND ' : ' OR ')})`
    }
    case 'like':
      return printLike(expression, printer)
    default:
      return printExpression(expression, printer)
  }
}

function printLike(
  like: Extract<Expression, { kind: 'like' | 'matches' }>,
  printer: Printer,
): string {
  const test = printExpression(like, printer)
  const folded = findLowered(like.argument)
  const field = folded ?? like.argument
  const pattern = makePartsPattern(listLikeParts(like.pattern))
  if (field.kind !== 'field' || printer.grouped.has(field.relation) || pattern === undefined)
    return test
  const text = `(${printTextExpression(field.path, `r${field.relation}.data`)})`
  const ignoreCase = like.ignoreCase || folded !== undefined
  return `(${printPartsTest(text, printer.values.add(pattern, 'text'), ignoreCase)} AND ${test})`
}

/** Finds the field whose lower case is compared, which is what ILIKE compares. */
function findLowered(argument: Expression): Expression | undefined {
  if (argument.kind !== 'call' || argument.name !== 'lower') return undefined
  const [inner] = argument.arguments
  return inner?.kind === 'convert' && inner.type === 'text' ? inner.argument : undefined
}
