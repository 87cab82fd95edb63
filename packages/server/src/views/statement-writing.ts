import { type Printer, printExpression, type sqlTypes } from '../query/compile/print-expression.ts'
import { makeQueryPrinter } from '../query/compile/print-query.ts'
import type { Resolve } from '../query/join.ts'
import { type CompiledStatement, makeSharedParameters } from '../query/sql-text.ts'
import type { Expression, Query } from '../query/tree/query.ts'

/** The place of a view's tables: the schema of its application, its number, and the tables of its sources. */
export type ViewPlace = {
  readonly schema: string
  readonly number: number
  readonly resolve: Resolve
}

/** Returns, for a model, the leaf below which entries count. Each application's chain has numbers of its own. */
export type Positions = (model: string) => number

export type SqlType = (typeof sqlTypes)[keyof typeof sqlTypes] | 'int8' | 'boolean'

/** `advance`: applies the change between two positions. `fill`: compares everything with the tables' contents. */
export type Mode = 'advance' | 'fill'

/** The positions that a statement starts from and goes to. */
export type Span = { readonly from: Positions; readonly to: Positions }

/** A statement that can be run between any two positions; its text is the same for all. */
export type PositionedStatement = (span: Span) => CompiledStatement

/** The state that the parts of one statement share while it is written. */
export type Writing = {
  readonly place: ViewPlace
  readonly print: (expression: Expression) => string
  /** Prints a query as of the position that the statement goes to. */
  readonly printQuery: (query: Query) => string
  /** Prints the position that the statement starts from, or goes to. */
  readonly position: (which: keyof Span, model: string) => string
  /** Returns the name of a common table of the statement, which is written at its first use. */
  readonly common: (of: object, text: () => string) => string
  /** Finishes the statement, its common tables first. */
  readonly statement: (text: string) => PositionedStatement
}

/** Begins a statement. The order of `top`, a normalized query, is that of the whole. */
export function beginStatement(place: ViewPlace, top: Query): Writing {
  const values = makeSharedParameters()
  const names = new Map<object, string>()
  const tables: string[] = []
  const positions = new Map<number, { readonly which: keyof Span; readonly model: string }>()
  const position = (which: keyof Span, model: string): string => {
    const text = values.add(`${which} ${model}`, 'int8')
    positions.set(getParameterIndex(text), { which, model })
    return text
  }
  const resolve: Resolve = (model) => {
    const source = place.resolve(model)
    return source === undefined ? undefined : { ...source, asOf: position('to', model) }
  }
  const printer: Printer = {
    values,
    query: makeQueryPrinter({ resolve, history: false, top }),
    dataSets: (model) => place.resolve(model)?.dataSets,
    grouped: new Set(),
    fieldColumns: new Map(),
    filterColumns: new Map(),
    work: { chars: 0 },
  }
  return {
    place,
    print: (expression) => printExpression(expression, printer),
    printQuery: (query) => printer.query(query, printer),
    position,
    common: (of, text) => {
      const known = names.get(of)
      if (known !== undefined) return known
      const body = text()
      const name = `x${names.size}`
      names.set(of, name)
      tables.push(`${name} AS (${body})`)
      return name
    },
    statement: (body) => {
      const text = tables.length === 0 ? body : `WITH ${tables.join(',\n')}\n${body}`
      return (span) => ({
        text,
        values: values.values.map((value, at) => {
          const found = positions.get(at)
          return found === undefined ? value : span[found.which](found.model)
        }),
      })
    },
  }
}

/** Returns the index of a parameter among the values, from 0. */
function getParameterIndex(parameter: string): number {
  return Number.parseInt(parameter.slice(1), 10) - 1
}
