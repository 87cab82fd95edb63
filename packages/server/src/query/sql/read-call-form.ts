import type { FuncCall, Node } from 'libpg-query'
import { readNumberFormat } from '../tree/functions/number-format.ts'
import type { Expression } from '../tree/query.ts'

/** A call that stands for another node, or for an operator's row of another name. */
type CallForm =
  | { readonly node: Node }
  | { readonly name: string; readonly args: readonly Expression[] }

/** Finds what a call means whose function has several forms; undefined where its name says all. */
export function readCallForm(
  name: string,
  node: FuncCall,
  read: (argument: Node) => Expression,
): CallForm | undefined {
  const { args = [] } = node
  if (args.length !== 2) return undefined
  switch (name) {
    case 'to_timestamp':
      return { name: 'to_timestamp of text', args: args.map(read) }
    case 'to_char': {
      // Arguments are read once: reading them again at each level of nesting would take without end.
      const values = args.map(read)
      return { name: isOfNumber(values) ? 'to_char of number' : 'to_char', args: values }
    }
    case 'substring':
      return isText(args[1]) ? { node: makeFirstMatch(node) } : undefined
    default:
      return undefined
  }
}

/** A field that nobody declared is a number if the format is that of one. */
function isOfNumber([value, format]: readonly Expression[]): boolean {
  if (value?.type !== 'json') return value?.type === 'number'
  const text = format?.kind === 'constant' ? format.value : undefined
  return typeof text === 'string' && readNumberFormat(text) !== undefined
}

function isText(node: Node | undefined): boolean {
  return node !== undefined && 'A_Const' in node && node.A_Const.sval !== undefined
}

/** Makes `(regexp_match(…))[1]` of `substring(text FROM pattern)`. */
function makeFirstMatch(node: FuncCall): Node {
  const call = { ...node, funcname: [{ String: { sval: 'regexp_match' } }] }
  const first = { A_Const: { ival: { ival: 1 } } }
  return {
    A_Indirection: { arg: { FuncCall: call }, indirection: [{ A_Indices: { uidx: first } }] },
  }
}

/** Makes lists of rows of values, `(a, b)`, which are counted: two are equal if the lists are. */
export function listRowsOfValues(nodes: readonly Node[]): readonly Node[] {
  return nodes.map((each) => {
    if (!('RowExpr' in each)) return each
    const { args = [], location = -1 } = each.RowExpr
    return { FuncCall: { funcname: [{ String: { sval: 'jsonb_build_array' } }], args, location } }
  })
}
