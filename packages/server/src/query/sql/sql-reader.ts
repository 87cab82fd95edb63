import { limits } from '@tollbase/contract/limits'
import type { Node, SelectStmt } from 'libpg-query'
import { Fault } from '../../base/fault.ts'
import type { ParameterRef } from '../condition.ts'
import { countSteps } from '../steps.ts'
import { TypeProblem } from '../tree/make-expression.ts'
import type { Comparison, Expression, Query, TypedConstant, ValueType } from '../tree/query.ts'
import type { NamedWindows } from './named-windows.ts'
import { NameProblem, type Scope } from './scope.ts'
import type { SourceText } from './source-text.ts'

/** Several values that are given for one parameter. */
export type ValueList = { readonly values: readonly TypedConstant[] }
export type GivenParameter = TypedConstant | ValueList | ParameterRef

/** The state that the parts of one statement share while it is read. */
export type Reader = {
  readonly source: SourceText
  /** The values of the parameters, by their numbers from 1. */
  readonly parameters: readonly GivenParameter[]
  /** The time of now() in milliseconds since 1970; `run`: that of each run; undefined: now() is not allowed here. */
  readonly now: number | 'run' | undefined
  /** Allows the calls of read-record-call.ts. */
  readonly recordCalls: boolean
  /** Leaves out what is refused only because PostgreSQL would take it otherwise: the text was taken in before that. */
  readonly isStored: boolean
  /** Leaves open whose an unqualified name is, until the types that decide it are known. */
  readonly leavesOpen: boolean
  readonly typesOf: (model: string) => ReadonlyMap<string, ValueType> | undefined
  readonly lacks: (model: string, name: string) => boolean
  readonly primaryOf: (model: string) => string | undefined
  readonly nextId: () => number
  /** Notes the parser's place of an expression, for what is refused once all of the statement is read. */
  readonly noteLocation: (expression: Expression, location: number) => void
  /** Counts a use of a collection. */
  readonly spendSource: (model: string, location: number | undefined) => void
  /** Counts a use of a function in FROM, whose rows take memory as those of a collection do. */
  readonly spendUse: (location: number | undefined) => void
  /** Counts a column of a query, as `*` and TABLE stand for many, each time anew. */
  readonly spendColumn: (location: number | undefined) => void
  /** Counts a common table that names itself. */
  readonly spendRecursion: (location: number | undefined) => void
  readonly readSelect: (
    select: SelectStmt,
    place: Pick<SqlPlace, 'scope' | 'depth' | 'links'>,
  ) => Query
  /** Reads the query that replaces a model; undefined for a collection. */
  readonly readView: (model: string, depth: number) => Query | undefined
}

/** The place of an expression. */
export type SqlPlace = {
  readonly reader: Reader
  readonly scope: Scope
  readonly depth: number
  /** The number of operators in the chain so far. */
  readonly links?: number
  /** The parser's place of the innermost part around that has one. */
  readonly location?: number | undefined
  /** Named windows of this SELECT. */
  readonly windows?: NamedWindows
  /** The kinds of call that this place does not allow, each with the words for the place: ["aggregate", "WHERE"]. */
  readonly without: { readonly aggregates?: string; readonly windows?: string }
  /** Notes that this SELECT has an aggregate, whatever becomes of it: nothing is left of one that is compared with NULL. */
  readonly noteAggregate?: () => void
}

export type ReadExpression = (node: Node | undefined, place: SqlPlace) => Expression

/** Returns a 400 that names the place in the text: that of the part itself, or else of what is around it. */
export function refuse(
  place: Pick<SqlPlace, 'reader' | 'location'>,
  location: number | undefined,
  problem: string,
) {
  return place.reader.source.refuse(location, problem, place.location)
}

/** Runs a step, and reports its problems with names and types at the location. */
export function runAt<T>(
  place: Pick<SqlPlace, 'reader' | 'location'>,
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

/** Returns the place one level further in. */
export function enterLevel(place: SqlPlace, location?: number): SqlPlace {
  if (place.depth >= limits.sqlDepthMax)
    throw refuse(place, location, `something nested deeper than ${limits.sqlDepthMax} levels`)
  const isKnown = location !== undefined && location >= 0
  return { ...place, depth: place.depth + 1, location: isKnown ? location : place.location }
}

/**
 * Returns the place of the left side of an operator, or of a set operation, that has one of its kind on its left:
 * `a + b + c` is one level, as people count, but no chain may be so long that reading it takes all memory.
 */
export function enterChain(place: SqlPlace, location?: number): SqlPlace {
  const links = (place.links ?? 0) + 1
  if (links > limits.sqlLinksMax)
    throw refuse(place, location, `a chain of more than ${limits.sqlLinksMax} operators`)
  return { ...place, links }
}

/** Finds the first place that the parser gives inside a part of its tree. */
export function findFirstLocation(part: unknown): number | undefined {
  countSteps()
  if (typeof part !== 'object' || part === null) return undefined
  if ('location' in part && typeof part.location === 'number' && part.location >= 0)
    return part.location
  for (const inner of Object.values(part)) {
    const found = findFirstLocation(inner)
    if (found !== undefined) return found
  }
  return undefined
}

/** Finds the first node of a kind inside a part of the parser's tree. */
export function findNode(part: unknown, kind: string): object | undefined {
  countSteps()
  if (typeof part !== 'object' || part === null) return undefined
  if (kind in part) return part
  for (const inner of Object.values(part)) {
    const found = findNode(inner, kind)
    if (found !== undefined) return found
  }
  return undefined
}

/** Lists the texts of a dotted name of the parser. */
export function listTexts(nodes: readonly Node[] | undefined): readonly string[] {
  return (nodes ?? []).flatMap((node) => ('String' in node ? [node.String.sval ?? ''] : []))
}

/** Reads a whole number that is written out or given as a parameter. */
export function readWholeNumber(expression: Expression, most: number): number | undefined {
  if (expression.kind !== 'constant' || expression.type !== 'number') return undefined
  const number = Number(expression.value ?? Number.NaN)
  return Number.isInteger(number) && number >= 0 && number <= most ? number : undefined
}

/** Lists the items of a list in brackets; none where the node is something else. */
export function listItems(node: Node | undefined): readonly Node[] {
  return node !== undefined && 'List' in node ? (node.List.items ?? []) : []
}

const comparisons: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>='])

/** Returns true for a sign that compares two values. */
export const isComparison = (sign: string): sign is Comparison => comparisons.has(sign)
