import type { ParameterValue } from '../parameter.ts'
import type { Use } from './parameter-use.ts'

/** The type of one value. */
export type ItemType = 'string' | 'number' | 'integer' | 'boolean' | 'date' | 'enum'

/** A parameter as its owner declared it, checked; what is not bounded by him has the bounds of all. */
export type Declared = {
  readonly name: string
  readonly type: ItemType
  readonly isList: boolean
  readonly values: readonly (string | number)[]
  /** Of a date: milliseconds since 1970. */
  readonly min: number | undefined
  readonly max: number | undefined
  /** Whether the whole of a string matches the owner's pattern. */
  readonly matches: ((text: string) => boolean) | undefined
  readonly minLength: number
  readonly maxLength: number
  readonly maxItems: number
  readonly default: ParameterValue | undefined
  /** Without a value and a default: whether that is a 400, or the condition is left out. */
  readonly required: boolean
  readonly use: Use
}
