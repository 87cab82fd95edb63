import { limits } from '@tollbase/contract/limits'
import type { Node, SelectStmt } from 'libpg-query'
import { Fault } from '../../base/fault.ts'
import type { ParameterRef } from '../condition.ts'
import { TypeProblem } from '../tree/make-expression.ts'
import type { Expression, Query, TypedConstant, ValueType } from '../tree/query.ts'
import { NameProblem, type Scope } from './scope.ts'
import type { SourceText } from './source-text.ts'

/** What the reading of one statement shares. */
export type Reader = {
  readonly source: SourceText
  /** Values of the parameters, by their numbers from 1. */
  readonly parameters: readonly (TypedConstant | ParameterRef)[]
  /** Milliseconds since 1970, of now(); `run`: that of each run; undefined: there is no such time here. */
  readonly now: number | 'run' | undefined
  /** Whether the calls of read-record-call.ts are possible. */
  readonly recordCalls: boolean
  readonly typesOf: (model: string) => ReadonlyMap<string, ValueType> | undefined
  readonly nextId: () => number
  /** Counts a use of a collection. */
  readonly spendSource: (location: number | undefined) => void
  readonly readSelect: (select: SelectStmt, place: { scope: Scope; depth: number }) => Query
  /** The query that stands in the place of a model; undefined for a collection. */
  readonly readView: (model: string, depth: number) => Query | undefined
}

/** Where an expression stands. */
export type Place = {
  readonly reader: Reader
  readonly scope: Scope
  readonly depth: number
  /** Named windows of this SELECT. */
  readonly windows?: ReadonlyMap<string, Node>
  /** What there is none of here, and the words for here: ["aggregate", "WHERE"]. */
  readonly without: { readonly aggregates?: string; readonly windows?: string }
}

/** A 400 that names the place in the text. */
export function refuse(
  place: Pick<Place, 'reader'>,
  location: number | undefined,
  problem: string,
) {
  return place.reader.source.refuse(location, problem)
}

/** Runs a step whose problems are about the names and types that stand at the location. */
export function at<T>(
  place: Pick<Place, 'reader'>,
  location: number | undefined,
  step: () => T,
): T {
  try {
    return step()
  } catch (error) {
    if (error instanceof TypeProblem || error instanceof NameProblem)
      throw refuse(place, location, error.message)
    if (error instanceof Fault && error.details?.position === undefined) {
      const problem = error.details?.problem
      if (typeof problem === 'string') throw refuse(place, location, `something that ${problem}`)
    }
    throw error
  }
}

/** The place one level further in. */
export function deeper(place: Place, location?: number): Place {
  if (place.depth >= limits.sqlDepthMax)
    throw refuse(place, location, `something nested deeper than ${limits.sqlDepthMax} levels`)
  return { ...place, depth: place.depth + 1 }
}

/** The texts of a dotted name of the parser. */
export function textsOf(nodes: readonly Node[] | undefined): readonly string[] {
  return (nodes ?? []).flatMap((node) => ('String' in node ? [node.String.sval ?? ''] : []))
}

/** A whole number that is written as such or given as a parameter. */
export function wholeNumber(expression: Expression, most: number): number | undefined {
  if (expression.kind !== 'constant' || expression.type !== 'number') return undefined
  const number = Number(expression.value)
  return Number.isInteger(number) && number >= 0 && number <= most ? number : undefined
}
