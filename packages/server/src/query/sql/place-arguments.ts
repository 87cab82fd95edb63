import type { Node } from 'libpg-query'
import type { FunctionDefinition } from '../tree/functions/function-definition.ts'
import { TypeProblem } from '../tree/make-expression.ts'

const zero: Node = { A_Const: { ival: { ival: 0 } } }

/** Puts arguments with names (`days => 3`) into their places; those left out before them are 0. */
export function placeArguments(
  args: readonly Node[],
  { names }: Pick<FunctionDefinition, 'names'>,
  name: string,
): readonly Node[] {
  const placed: Node[] = []
  args.forEach((each, at) => {
    const named = 'NamedArgExpr' in each ? each.NamedArgExpr : undefined
    const index = named === undefined ? at : (names?.indexOf(named.name ?? '') ?? -1)
    const value = named === undefined ? each : named.arg
    if (index < 0 || value === undefined || placed[index] !== undefined)
      throw new TypeProblem(`the argument ${named?.name ?? ''} of ${name}`)
    placed[index] = value
  })
  return Array.from(placed, (each) => each ?? zero)
}
