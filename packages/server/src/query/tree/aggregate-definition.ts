import type { Bytes } from './bytes.ts'
import type { FunctionDefinition } from './functions/function-definition.ts'
import type { ValueType } from './query.ts'

/** One row for each aggregate. */
export type AggregateDefinition = Pick<
  FunctionDefinition,
  'parameters' | 'result' | 'whole' | 'held' | 'check'
> & {
  /**
   * Returns the most bytes that one row adds to a value that grows with the rows, by those of the arguments; not
   * given: the value is one of them.
   */
  readonly bytes?: (parts: readonly Bytes[]) => Bytes
  /**
   * Prints the call. `inside` holds DISTINCT and ORDER BY, for inside the brackets; `after` FILTER and OVER, for
   * behind them.
   */
  readonly print: (args: readonly string[], call: CallText, type: ValueType) => string
  /** True if it needs an order of its own rows to mean anything. */
  readonly ordered?: boolean
  /** True if its first parameter is what WITHIN GROUP (ORDER BY …) names; those in brackets follow. */
  readonly within?: true
  /** True if it cannot stand over a window, as WITHIN GROUP cannot. */
  readonly windowless?: true
  /** The aggregate of distinct values that it is another name of. */
  readonly standsFor?: 'count'
}

export type CallText = {
  readonly inside: (args: string) => string
  readonly after: string
  /** The direction of WITHIN GROUP: '' or ' DESC'. */
  readonly direction: string
  /** The same as `after`, for the rows alone for which the test (SQL) holds too. */
  readonly afterWhere: (test: string) => string
}
