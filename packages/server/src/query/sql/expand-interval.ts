import type { Node, TypeCast } from 'libpg-query'
import { TypeProblem } from '../tree/make-expression.ts'
import { listTexts } from './sql-reader.ts'

/** The fields of an interval by the bits of PostgreSQL's type; those that cut off nothing have no unit. */
const fields: ReadonlyMap<number, string> = new Map([
  [4, ' years'],
  [2, ' months'],
  [8, ' days'],
  [1024, ' hours'],
  [2048, ' minutes'],
  [4096, ' seconds'],
  [4 | 2, ''],
  [8 | 1024 | 2048 | 4096, ''],
  [32_767, ''],
])

/**
 * Writes `interval '1' day` as `interval '1 day'`, which means the same; undefined for any other cast. The reader and
 * the JSON of views both go by it.
 */
export function expandInterval(node: TypeCast): TypeCast | undefined {
  const { typmods, ...typeName } = node.typeName ?? {}
  if (typmods === undefined || listTexts(typeName.names).at(-1) !== 'interval') return undefined
  const [bits, precision] = typmods.map(readNumber)
  const text = readText(node.arg)
  const unit = precision === undefined && bits !== undefined ? fields.get(bits) : undefined
  const isPlain = /^\s*[+-]?\d+(\.\d+)?\s*$/.test(text ?? '')
  if (text === undefined || unit === undefined || (unit !== '' && !isPlain))
    throw new TypeProblem("fields behind an interval; write them inside, as in interval '1 day'")
  if (text.includes('.') && unit !== '' && unit !== ' seconds')
    throw new TypeProblem(`a part of${unit} behind an interval, which PostgreSQL would cut off`)
  const arg: Node = { A_Const: { sval: { sval: `${text.trim()}${unit}` } } }
  return { ...node, arg, typeName }
}

function readNumber(node: Node): number | undefined {
  return 'A_Const' in node ? node.A_Const.ival?.ival : undefined
}

function readText(node: Node | undefined): string | undefined {
  return node !== undefined && 'A_Const' in node ? node.A_Const.sval?.sval : undefined
}
