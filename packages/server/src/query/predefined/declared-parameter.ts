import type { ParameterValue } from '../parameter.ts'
import type { MatchBudget } from '../pattern-matcher.ts'
import type { ParameterUse } from './parameter-use.ts'

/** The type of one value. */
export type ItemType = 'string' | 'number' | 'integer' | 'boolean' | 'date' | 'enum'

/** A parameter as its owner declared it, checked; where he gave no bound, the general one applies. */
export type DeclaredParameter = {
  readonly name: string
  readonly type: ItemType
  readonly isList: boolean
  readonly values: readonly (string | number)[]
  /** For a date: milliseconds since 1970. */
  readonly min: number | undefined
  readonly max: number | undefined
  /** Returns true if a whole string matches the owner's pattern. */
  readonly matches: ((text: string, work: MatchBudget) => boolean) | undefined
  readonly minLength: number
  readonly maxLength: number
  readonly maxItems: number
  readonly default: ParameterValue | undefined
  /** True if a missing value without a default is a 400; else the condition is left out. */
  readonly required: boolean
  readonly use: ParameterUse
}
