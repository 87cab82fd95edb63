import type { A_Expr, Node } from 'libpg-query'
import { translatePattern } from '../pattern.ts'
import { coerceTo, makeConstant, negate } from '../tree/make-expression.ts'
import type { Expression } from '../tree/query.ts'
import { writeSimilar } from './similar-to.ts'
import type { ReadExpression } from './sql-reader.ts'
import { listTexts, refuse, runAt, type SqlPlace } from './sql-reader.ts'

/** Reads a test by a regular expression. */
export function readMatch(
  match: { readonly sign: string; readonly left: Expression; readonly right: Expression },
  place: SqlPlace,
  location: number | undefined,
): Expression {
  refuseOpenPattern(match.right, place, location)
  const pattern = constantText(match.right)
  if (pattern === undefined)
    throw refuse(place, location, 'a pattern that is no literal or parameter')
  const prefix = match.sign.endsWith('*') && !pattern.startsWith('(?i)') ? '(?i)' : ''
  const matches: Expression = Object.freeze({
    kind: 'matches',
    type: 'boolean',
    argument: textual(match.left, place, location),
    pattern: runAt(place, location, () => translatePattern(prefix + pattern, '/sql')),
    ignoreCase: false,
  })
  return match.sign.startsWith('!') ? negate(matches) : matches
}

/** Reads LIKE and ILIKE. */
export function readLike(node: A_Expr, place: SqlPlace, read: ReadExpression): Expression {
  const { escapedBy, wanted } = splitEscape(node)
  const right = read(wanted, place)
  refuseOpenPattern(right, place, node.location)
  const given = constantText(right)
  const sign = escapedBy === undefined ? '\\' : constantText(read(escapedBy, place))
  if (sign === undefined || [...sign].length > 1)
    throw refuse(place, node.location, 'an ESCAPE that is no single character')
  const pattern = given === undefined ? undefined : writeEscapes(given, sign)
  if (pattern === undefined)
    throw refuse(place, node.location, 'a LIKE pattern that is no literal or parameter')
  if (/(?:^|[^\\])(?:\\\\)*\\$/.test(pattern))
    throw refuse(place, node.location, 'a LIKE pattern that ends with its escape character')
  const like: Expression = Object.freeze({
    kind: 'like',
    type: 'boolean',
    argument: textual(read(node.lexpr, place), place, node.location),
    pattern,
    ignoreCase: node.kind === 'AEXPR_ILIKE',
  })
  return listTexts(node.name).join('').startsWith('!') ? negate(like) : like
}

/** Reads SIMILAR TO as a test by a regular expression. */
export function readSimilar(node: A_Expr, place: SqlPlace, read: ReadExpression): Expression {
  const { escapedBy, wanted } = splitEscape(node)
  const right = read(wanted, place)
  refuseOpenPattern(right, place, node.location)
  const given = constantText(right)
  const by = escapedBy === undefined ? '\\' : constantText(read(escapedBy, place))
  if (by === undefined || [...by].length > 1)
    throw refuse(place, node.location, 'an ESCAPE that is no single character')
  if (given === undefined)
    throw refuse(place, node.location, 'a SIMILAR TO pattern that is no literal or parameter')
  const pattern = writeSimilar(given, by)
  if (pattern === undefined) throw refuse(place, node.location, similarEscape)
  const sign = listTexts(node.name).join('')
  const match = { sign, left: read(node.lexpr, place), right: makeConstant('text', pattern) }
  return readMatch(match, place, node.location)
}

export const similarEscape =
  'a SIMILAR TO pattern whose escape character is its last, or stands before a quote'

/** Returns the pattern of LIKE or SIMILAR TO, and the character behind ESCAPE. */
export function splitEscape(node: A_Expr): {
  readonly wanted: Node | undefined
  readonly escapedBy?: Node | undefined
} {
  const { rexpr } = node
  if (rexpr === undefined || !('FuncCall' in rexpr)) return { wanted: rexpr }
  const [wanted, escapedBy] = rexpr.FuncCall.args ?? []
  const name = listTexts(rexpr.FuncCall.funcname).at(-1)
  const isEscape = name === 'like_escape' || name === 'similar_to_escape'
  return isEscape ? { wanted, escapedBy } : { wanted: rexpr }
}

/** Writes a pattern with the usual escape character in place of its own; '' is none. */
export function writeEscapes(pattern: string, sign: string): string {
  if (sign === '\\') return pattern
  const characters = [...pattern]
  let written = ''
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? ''
    if (character === sign) {
      at += 1
      // At the end it escapes nothing, which is refused with the usual one too.
      written += `\\${characters[at] ?? ''}`
    } else written += character === '\\' ? '\\\\' : character
  }
  return written
}

/** A caller who gives the pattern as a parameter could match everything. */
function refuseOpenPattern(right: Expression, place: SqlPlace, location: number | undefined): void {
  if (right.kind === 'parameter')
    throw refuse(
      place,
      location,
      'a parameter as a pattern, by which a caller could match everything; use starts_with or strpos',
    )
}

/** Leaves JSON values as they are: a number is not like any text. */
function textual(
  expression: Expression,
  place: SqlPlace,
  location: number | undefined,
): Expression {
  const isField = expression.kind === 'convert' && expression.argument.kind === 'field'
  if (isField && expression.type === 'text') return expression.argument
  return expression.type === 'json'
    ? expression
    : runAt(place, location, () => coerceTo(expression, 'text'))
}

function constantText(expression: Expression): string | undefined {
  const isText = expression.kind === 'constant' && expression.type === 'text'
  return isText && typeof expression.value === 'string' ? expression.value : undefined
}
