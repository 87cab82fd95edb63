import { type Expression, nothing, type ValueType } from '../tree/query.ts'

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
  if (left.type === 'interval') return findOfInterval(sign, right.type)
  if (sign !== '+' && sign !== '-') return undefined
  if (right.type === 'interval') return `time ${sign} interval`
  if (sign === '-' && isTime(right))
    return left.type === 'date' && right.type === 'date' ? 'date - date' : 'time - time'
  if (sign === '-' && left.type === 'timestamp') return 'time - time'
  return left.type === 'date' && !isTime(right) ? `date ${sign} number` : undefined
}

function findOfInterval(sign: string, right: ValueType): string | undefined {
  if (sign === '*' || sign === '/') return `interval ${sign} number`
  if (sign === '-') return 'interval - interval'
  return right === 'interval' || right === 'text' || right === 'null'
    ? 'interval + interval'
    : undefined
}

function isTime({ type }: Expression): boolean {
  return type === 'timestamp' || type === 'date'
}
