import { invalid } from '../../base/fault.ts'
import { inside, type Place, type Read } from './definition-place.ts'

/** An operator of the grammar: what may stand beside it, and what it means. */
export type Operator = {
  /** Other members of its object. */
  readonly beside: readonly string[]
  readonly read: (call: Call) => Read
}

export type Call = {
  /** With its `$`. */
  readonly name: string
  readonly operand: unknown
  readonly object: Readonly<Record<string, unknown>>
  /** Of the object. */
  readonly place: Place
  /** Of the operand. */
  readonly at: Place
}

/** The operands: a list of expressions, or one alone. */
export function operands(
  { operand, at }: Call,
  counts: { readonly least: number; readonly most: number },
): readonly Read[] {
  const isList = Array.isArray(operand)
  const values: readonly unknown[] = Array.isArray(operand) ? operand : [operand]
  if (values.length < counts.least || values.length > counts.most) {
    const { least, most } = counts
    const words =
      least === most ? `${least}` : most === Infinity ? `${least} or more` : `${least} to ${most}`
    throw invalid(at.pointer, `must be a list of ${words}`)
  }
  return values.map((value, index) => at.expression(value, isList ? inside(at, index) : at))
}

/** Operands in canonical JSON: one stands alone. */
export function listed(reads: readonly Read[]): Read['json'] {
  const [only] = reads
  return only !== undefined && reads.length === 1 ? only.json : reads.map((each) => each.json)
}
