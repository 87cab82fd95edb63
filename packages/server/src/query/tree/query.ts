import type { Condition, FieldPath, ParameterRef } from '../condition.ts'
import { countSteps } from '../steps.ts'

/**
 * The type of an expression's value. `json`: any JSON value, as fields of records are; JSON null counts as SQL's
 * NULL. `timestamp`: without a zone, in UTC. `null`: nothing but NULL.
 */
export type ValueType =
  | 'json'
  | 'number'
  | 'text'
  | 'boolean'
  | 'timestamp'
  | 'date'
  | 'interval'
  | 'null'

/** The way in which PostgreSQL holds a JSON value: as a jsonb, or as an array of values of a type. */
export type Held = 'document' | { readonly items: Typed }

export type Comparison = '=' | '<>' | '<' | '<=' | '>' | '>='

/** The type of a value. */
export type Typed = {
  readonly type: ValueType
  /** True of a number that PostgreSQL would hold as an integer, and cut where it divides it by another. */
  readonly isWhole?: boolean | undefined
  /**
   * The meaning of a timestamp: a moment, written in UTC (PostgreSQL's timestamptz), or what a clock shows. Undefined
   * if nothing says so.
   */
  readonly zone?: 'moment' | 'local' | undefined
  /** The way in which PostgreSQL holds a JSON value, if the statement says so. */
  readonly held?: Held | undefined
}

/**
 * A checked expression; frozen. Types fit already: a `convert` or a `cast` stands wherever a value had to change
 * its type. Relations have numbers that are unique in the whole query.
 */
export type Expression = Typed &
  (
    | { readonly kind: 'field'; readonly relation: number; readonly path: FieldPath }
    /** A whole record, NULL where a join found none; or its place in the order of storing. */
    | { readonly kind: 'record' | 'leaf'; readonly relation: number }
    /** A column of a sub-query, by its place. */
    | { readonly kind: 'column'; readonly relation: number; readonly column: number }
    | Constant
    /** A value that is given when the statement runs, with the expression's type. */
    | { readonly kind: 'parameter'; readonly parameter: ParameterRef }
    /** A function or operator of the list in functions/all-functions.ts. */
    | { readonly kind: 'call'; readonly name: string; readonly arguments: readonly Expression[] }
    | Aggregate
    | WindowCall
    /** A number whose bits say which of the arguments the row is not grouped by: SQL's GROUPING. */
    | { readonly kind: 'grouping'; readonly arguments: readonly Expression[] }
    | {
        readonly kind: 'case'
        readonly branches: readonly { readonly when: Expression; readonly value: Expression }[]
        readonly otherwise: Expression | undefined
      }
    /** The value if it has the type, else NULL. */
    | { readonly kind: 'convert'; readonly argument: Expression }
    /** The value cast to the type as far as possible, else NULL. */
    | { readonly kind: 'cast'; readonly argument: Expression }
    | {
        readonly kind: 'compare'
        readonly operator: Comparison | 'is distinct from'
        readonly left: Expression
        readonly right: Expression
      }
    /** The argument is one of the constants. */
    | {
        readonly kind: 'one-of'
        readonly argument: Expression
        readonly values: readonly TypedConstant[]
      }
    /** The argument is one of the values that are given when the statement runs. */
    | { readonly kind: 'in-list'; readonly argument: Expression; readonly parameter: ParameterRef }
    /** The arguments, one or a row of several, are a row of the query. */
    | {
        readonly kind: 'in-query'
        readonly arguments: readonly Expression[]
        readonly query: Query
      }
    | { readonly kind: 'exists'; readonly query: Query }
    | { readonly kind: 'scalar'; readonly query: Query }
    | { readonly kind: 'is-null'; readonly argument: Expression }
    | { readonly kind: 'is-true' | 'is-false'; readonly argument: Expression }
    | { readonly kind: 'and' | 'or'; readonly arguments: readonly Expression[] }
    | { readonly kind: 'not'; readonly argument: Expression }
    /** A test of text against a constant. The pattern is LIKE's, or PostgreSQL's regular expression. */
    | {
        readonly kind: 'like' | 'matches'
        readonly argument: Expression
        readonly pattern: string
        readonly ignoreCase: boolean
      }
    /** Conditions of a JSON request on a record. */
    | {
        readonly kind: 'condition'
        readonly relation: number
        /** Undefined if the relation is a sub-query. */
        readonly model: string | undefined
        readonly condition: Condition
        /** The relation that `reference` conditions compare with. */
        readonly parent: number | undefined
        /** The record itself, if the relation is a sub-query that has only columns. */
        readonly record?: Expression
      }
  )

/** Numbers as decimal text (all digits kept), times as ISO 8601 in UTC without a zone, intervals in PostgreSQL's words. */
type Constant = { readonly kind: 'constant'; readonly value: string | boolean | null }
export type TypedConstant = Constant & Typed

export type Aggregate = {
  readonly kind: 'aggregate'
  readonly name: string
  /** The arguments; none for `count(*)`. */
  readonly arguments: readonly Expression[]
  readonly distinct: boolean
  readonly orderBy: readonly Order[]
  readonly filter: Expression | undefined
}

export type WindowCall = {
  readonly kind: 'window'
  readonly name: string
  readonly arguments: readonly Expression[]
  readonly filter: Expression | undefined
  readonly partitionBy: readonly Expression[]
  readonly orderBy: readonly Order[]
  readonly frame: Frame | undefined
}

export type Frame = {
  readonly mode: 'ROWS' | 'RANGE' | 'GROUPS'
  readonly from: FrameEnd
  readonly to: FrameEnd
  readonly exclude: '' | ' EXCLUDE CURRENT ROW' | ' EXCLUDE GROUP' | ' EXCLUDE TIES'
}

export type FrameEnd =
  | 'UNBOUNDED PRECEDING'
  | 'UNBOUNDED FOLLOWING'
  | 'CURRENT ROW'
  | { readonly rows: number; readonly direction: 'PRECEDING' | 'FOLLOWING' }
  /** The most that a value of the order may be away: a number, or an interval. */
  | { readonly distance: TypedConstant; readonly direction: 'PRECEDING' | 'FOLLOWING' }

export type Order = {
  readonly expression: Expression
  readonly descending: boolean
  readonly nulls: 'first' | 'last' | undefined
}

export const nothing: TypedConstant = Object.freeze({ kind: 'constant', type: 'null', value: null })

/** Lists the expressions directly inside, without entering sub-queries. */
export function listParts(expression: Expression): readonly Expression[] {
  countSteps()
  switch (expression.kind) {
    case 'field':
    case 'record':
    case 'leaf':
    case 'column':
    case 'constant':
    case 'parameter':
    case 'exists':
    case 'scalar':
      return []
    case 'condition':
      return expression.record === undefined ? [] : [expression.record]
    case 'call':
    case 'and':
    case 'or':
    case 'grouping':
    case 'in-query':
      return expression.arguments
    case 'aggregate':
      return [
        ...expression.arguments,
        ...expression.orderBy.map((order) => order.expression),
        ...(expression.filter === undefined ? [] : [expression.filter]),
      ]
    case 'window':
      return [
        ...expression.arguments,
        ...(expression.filter === undefined ? [] : [expression.filter]),
        ...expression.partitionBy,
        ...expression.orderBy.map((order) => order.expression),
      ]
    case 'case':
      return [
        ...expression.branches.flatMap(({ when, value }) => [when, value]),
        ...(expression.otherwise === undefined ? [] : [expression.otherwise]),
      ]
    case 'compare':
      return [expression.left, expression.right]
    default:
      return [expression.argument]
  }
}

/** Finds the query inside, if it has one. */
export function findSubQuery(expression: Expression): Query | undefined {
  switch (expression.kind) {
    case 'exists':
    case 'scalar':
    case 'in-query':
      return expression.query
    default:
      return undefined
  }
}

/** A checked query over collections; frozen. Made from SQL or from a request's aggregates. */
export type Query = SelectQuery | SetQuery

export type SelectQuery = {
  readonly kind: 'select'
  readonly with: readonly CommonTable[]
  readonly distinct: boolean
  readonly columns: readonly Column[]
  /** Records given whole (`*`): numbers of relations. Their fields come before the columns. */
  readonly records: readonly number[]
  readonly from: readonly Relation[]
  readonly where: Expression | undefined
  /** Gathers rows into groups; with no `groupBy` there is one group of all rows. */
  readonly grouped: boolean
  readonly groupBy: readonly Expression[]
  /** The sets of `groupBy`, by places, for each of which there are groups; undefined: one of all. */
  readonly groupingSets?: readonly (readonly number[])[]
  readonly having: Expression | undefined
  /** The relation id of the rows of a DISTINCT, which `orderBy` then names. */
  readonly id: number
} & Page

export type SetQuery = {
  readonly kind: 'set'
  readonly with: readonly CommonTable[]
  readonly operator: 'UNION' | 'INTERSECT' | 'EXCEPT'
  readonly all: boolean
  readonly left: Query
  readonly right: Query
  /** The names and types of the result; both sides are cast to these types. */
  readonly columns: readonly OutputColumn[]
  /** True if each side gives the records of one relation whole, before the columns. */
  readonly isOfRecords?: boolean
  /** The relation id of the set, which `orderBy` names. */
  readonly id: number
} & Page

/** Lists the sides of a chain of set operations: joined two by two, the first would be looked at for each one. */
export function listSides(query: SetQuery): readonly Query[] {
  const others = [query.right]
  let first = query.left
  while (first.kind === 'set' && first.with.length === 0 && first.orderBy.length === 0) {
    others.push(first.right)
    first = first.left
  }
  return [first, ...others.toReversed()]
}

type Page = {
  readonly orderBy: readonly Order[]
  readonly limit: number | undefined
  readonly offset: number
  /** Parameters for limit and offset; of two limits the lesser counts. */
  readonly limitBy?: ParameterRef | undefined
  readonly offsetBy?: ParameterRef | undefined
}

export type Column = {
  readonly name: string
  /** Its path in the answer's row, if that is not its name. */
  readonly path?: readonly string[]
  readonly expression: Expression
}

export type OutputColumn = Typed & {
  readonly name: string
  readonly path: readonly string[]
}

export type CommonTable = {
  readonly id: number
  readonly query: Query
  /** True if the right side of the query, a UNION, names the table itself. */
  readonly isRecursive?: boolean
}

export type Relation =
  /** `model` is `app::collection`, or a collection of the root's application. */
  | { readonly kind: 'collection'; readonly id: number; readonly model: string }
  | {
      readonly kind: 'query'
      readonly id: number
      readonly query: Query
      /** True if its columns are computed once a row, whatever the query around does with them. */
      readonly isFence?: boolean
      /** True if it may use the relations before it in FROM. */
      readonly isLateral?: boolean
    }
  /** The rows that a function of functions/row.ts gives; it may use the relations before it in FROM. */
  | {
      readonly kind: 'function'
      readonly id: number
      readonly name: string
      readonly arguments: readonly Expression[]
      /** Its columns. */
      readonly results: readonly Typed[]
      /** True if a last column counts the rows from 1. */
      readonly hasOrdinality: boolean
    }
  /** A common table, by the id that WITH gave it. */
  | {
      readonly kind: 'common'
      readonly id: number
      readonly table: number
      /** True inside of a table that names itself. */
      readonly isItself?: boolean
    }
  | {
      readonly kind: 'join'
      readonly join: 'INNER' | 'LEFT' | 'RIGHT' | 'FULL' | 'CROSS'
      readonly left: Relation
      readonly right: Relation
      readonly on: Expression | undefined
    }

/** Makes a SELECT of columns alone; the caller adds the rest. */
export function makeSelect(parts: Pick<SelectQuery, 'columns' | 'from' | 'id'>): SelectQuery {
  return {
    kind: 'select',
    with: [],
    distinct: false,
    records: [],
    where: undefined,
    grouped: false,
    groupBy: [],
    having: undefined,
    orderBy: [],
    limit: undefined,
    offset: 0,
    ...parts,
  }
}

/** Returns true if a window stands in the expression, sub-queries aside. */
export function hasWindow(expression: Expression): boolean {
  return expression.kind === 'window' || listParts(expression).some(hasWindow)
}

/** Returns the output of a query: its columns in order, and the records that it gives whole. */
export function getOutput(query: Query): {
  readonly columns: readonly OutputColumn[]
  readonly records: readonly number[]
} {
  if (query.kind === 'set')
    return { columns: query.columns, records: query.isOfRecords ? [query.id] : [] }
  const columns = query.columns.map(({ name, path, expression }) => ({
    name,
    path: path ?? [name],
    type: expression.type,
    isWhole: expression.isWhole,
    held: expression.held,
  }))
  return { columns, records: query.records }
}

/** Lists the relations of a FROM list without joins around them, in order. */
export function listRelations(
  from: readonly Relation[],
): readonly Exclude<Relation, { kind: 'join' }>[] {
  return from.flatMap((relation) =>
    relation.kind === 'join' ? listRelations([relation.left, relation.right]) : [relation],
  )
}
