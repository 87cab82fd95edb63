import { type Printer, printExpression, type sqlTypes } from '../query/compile/print-expression.ts'
import { queryPrinter } from '../query/compile/print-query.ts'
import type { Resolve } from '../query/join.ts'
import { type CompiledStatement, sharedParameters } from '../query/sql-text.ts'
import type { Expression, Query } from '../query/tree/query.ts'

/** Where a view's tables are: the schema of its application, its number, and the tables of its sources. */
export type ViewPlace = {
  readonly schema: string
  readonly number: number
  readonly resolve: Resolve
}

/** By model: entries below this leaf count. Each application's chain has numbers of its own. */
export type Positions = (model: string) => number

export type SqlType = (typeof sqlTypes)[keyof typeof sqlTypes] | 'int8' | 'boolean'

/** `advance`: by the change between two positions. `fill`: by all that is there, set against what the tables hold. */
export type Mode = 'advance' | 'fill'

/** What the writing of one statement shares. */
export type Writing = {
  readonly place: ViewPlace
  readonly print: (expression: Expression) => string
  readonly printQuery: (query: Query) => string
  /** SQL of the position that the statement starts from, or goes to. */
  readonly position: (which: 'from' | 'to', model: string) => string
  /** The name of a common table of the statement, which is written when it is first asked for. */
  readonly common: (of: object, text: () => string) => string
  /** The statement, its common tables before it. */
  readonly statement: (text: string) => CompiledStatement
}

/** Begins a statement. `from` is not asked for where everything is made from what is there at `to`. */
export function write(
  place: ViewPlace,
  positions: { readonly from?: Positions; readonly to: Positions; readonly top?: Query },
): Writing {
  const values = sharedParameters()
  const names = new Map<object, string>()
  const tables: string[] = []
  const resolve: Resolve = (model) => {
    const source = place.resolve(model)
    return source === undefined ? undefined : { ...source, asOf: positions.to(model) }
  }
  const { top } = positions
  const query: Printer['query'] = (each, printer) =>
    queryPrinter({ resolve, history: false, top: top ?? each })(each, printer)
  const printer: Printer = {
    values,
    query,
    dataSets: (model) => place.resolve(model)?.dataSets,
    grouped: new Set(),
    work: { chars: 0 },
  }
  return {
    place,
    print: (expression) => printExpression(expression, printer),
    printQuery: (each) => query(each, printer),
    position: (which, model) => values.add((positions[which] ?? positions.to)(model), 'int8'),
    common: (of, text) => {
      const known = names.get(of)
      if (known !== undefined) return known
      const body = text()
      const name = `x${names.size}`
      names.set(of, name)
      tables.push(`${name} AS (${body})`)
      return name
    },
    statement: (text) => ({
      text: tables.length === 0 ? text : `WITH ${tables.join(',\n')}\n${text}`,
      values: values.values,
    }),
  }
}
