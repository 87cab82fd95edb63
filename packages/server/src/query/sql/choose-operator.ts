import { findItems, isTextLiteral } from '../tree/make-expression.ts'
import { type Expression, nothing, type Typed, type ValueType } from '../tree/query.ts'
import { isTime } from '../tree/time-bounds.ts'

/** Returns the operator of one sign that fits: times, intervals, and those that count in a list, have their own. */
export function chooseOperator(
  sign: string,
  [left = nothing, right = nothing]: readonly Expression[],
): { readonly name: string; readonly turned: boolean } {
  const name = findOperator(sign, left, right)
  if (name !== undefined) return { name, turned: false }
  const other = sign === '+' || sign === '*' ? findOperator(sign, right, left) : undefined
  return other === undefined ? { name: sign, turned: false } : { name: other, turned: true }
}

function findOperator(sign: string, left: Expression, right: Expression): string | undefined {
  if (sign.startsWith('->')) return right.type === 'number' ? `${sign} number` : sign
  if (sign === '||') return findJoin(left, right)
  if (sign === '@>' || sign === '<@') return areArrays([left, right]) ? `array ${sign} array` : sign
  if (sign === '-' && left.held === 'document') return findRemoval(right)
  if (left.type === 'interval') return findOfInterval(sign, right.type)
  if (sign !== '+' && sign !== '-') return undefined
  if (right.type === 'interval') return `time ${sign} interval`
  if (sign === '-' && isTime(right))
    return left.type === 'date' && right.type === 'date' ? 'date - date' : 'time - time'
  if (sign === '-' && left.type === 'timestamp') return 'time - time'
  return left.type === 'date' && !isTime(right) ? `date ${sign} number` : undefined
}

/** Returns the operator that puts two JSON values, or arrays, together; undefined for that of texts. */
function findJoin(left: Expression, right: Expression): string | undefined {
  const sides = [left, right]
  if (sides.some((each) => each.held === 'document'))
    return sides.every(isDocumentBeside) ? 'jsonb || jsonb' : undefined
  const [ofLeft, ofRight] = [findItems(left), findItems(right)]
  const isArray = (each: Expression) => findItems(each) !== undefined || each.type === 'null'
  if (sides.every(isArray)) {
    const types = new Set([ofLeft?.type, ofRight?.type, undefined, 'json'])
    return types.size <= 3 ? 'array || array' : undefined
  }
  if (isItem(ofLeft, right)) return 'array || item'
  return isItem(ofRight, left) ? 'item || array' : undefined
}

/** Returns true if the value can be an element; a literal is none, as PostgreSQL would read it as an array. */
function isItem(items: Typed | undefined, item: Expression): boolean {
  if (items === undefined || isTextLiteral(item)) return false
  return [items.type, item.type].includes('json') || items.type === item.type
}

/** Returns true if PostgreSQL would take the value for a jsonb where it stands beside one. */
function isDocumentBeside(expression: Expression): boolean {
  const { held, type } = expression
  const isPart = expression.kind === 'call' && /^(->|-> number|#>)$/.test(expression.name)
  return held === 'document' || type === 'null' || isPart || isTextLiteral(expression)
}

function findRemoval({ type }: Expression): string | undefined {
  if (type === 'number') return 'jsonb - place'
  return type === 'text' || type === 'null' ? 'jsonb - name' : undefined
}

function areArrays(sides: readonly Expression[]): boolean {
  return sides.every((each) => findItems(each) !== undefined)
}

function findOfInterval(sign: string, right: ValueType): string | undefined {
  if (sign === '*' || sign === '/') return `interval ${sign} number`
  if (sign === '-') return 'interval - interval'
  return right === 'interval' || right === 'text' || right === 'null'
    ? 'interval + interval'
    : undefined
}
