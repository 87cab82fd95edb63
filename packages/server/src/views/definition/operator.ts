import { makeInvalidFault } from '../../base/fault.ts'
import { type DefinitionPlace, enterMember, type ReadPart } from './definition-place.ts'

/** An operator of the grammar: the members allowed beside it, and its reader. */
export type Operator = {
  /** The other members that its object may have. */
  readonly beside: readonly string[]
  readonly read: (call: OperatorCall) => ReadPart
}

export type OperatorCall = {
  /** The operator's name, with its `$`. */
  readonly name: string
  readonly operand: unknown
  readonly object: Readonly<Record<string, unknown>>
  /** The place of the object. */
  readonly place: DefinitionPlace
  /** The place of the operand. */
  readonly at: DefinitionPlace
}

/** Reads the operands: a list of expressions, or a single one. */
export function readOperands(
  { operand, at }: OperatorCall,
  counts: { readonly least: number; readonly most: number },
): readonly ReadPart[] {
  const isList = Array.isArray(operand)
  const values: readonly unknown[] = Array.isArray(operand) ? operand : [operand]
  if (values.length < counts.least || values.length > counts.most) {
    const { least, most } = counts
    const words =
      least === most ? `${least}` : most === Infinity ? `${least} or more` : `${least} to ${most}`
    throw makeInvalidFault(at.pointer, `must be a list of ${words}`)
  }
  return values.map((value, index) => at.expression(value, isList ? enterMember(at, index) : at))
}

/** Returns operands in canonical JSON: a single one without a list. */
export function toOperandJson(reads: readonly ReadPart[]): ReadPart['json'] {
  const [only] = reads
  return only !== undefined && reads.length === 1 ? only.json : reads.map((each) => each.json)
}
