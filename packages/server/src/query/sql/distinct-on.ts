import type { SelectStmt } from 'libpg-query'
import { makeExactKey } from '../tree/expression-key.ts'
import { makeComparison, makeDigits } from '../tree/make-expression.ts'
import {
  type Column,
  type Expression,
  getOutput,
  hasWindow,
  makeSelect,
  type Order,
  type SelectQuery,
} from '../tree/query.ts'
import { toTyped } from './read-columns.ts'
import { readExpression } from './read-expression.ts'
import { findOutput } from './read-set.ts'
import { refuse, type SqlPlace } from './sql-reader.ts'

/** The name of the column that numbers the rows of each DISTINCT ON; no statement can give one of such a name. */
export const distinctOnName = 'DISTINCT ON'

/** Reads what DISTINCT ON tells rows apart by; undefined if there is none. */
export function readDistinctOn(
  { distinctClause = [] }: SelectStmt,
  columns: readonly Column[],
  place: SqlPlace,
): readonly Expression[] | undefined {
  const nodes = distinctClause.filter((node) => Object.keys(node).length > 0)
  if (nodes.length === 0) return undefined
  return nodes.map((node) => {
    const column = columns[findOutput(node, columns, place) ?? -1]
    return column?.expression ?? toTyped(readExpression(node, place))
  })
}

/**
 * Keeps the first row of each of `on`, as ORDER BY has them: rows are numbered in a sub-query, and those with the
 * number 1 stay. Rows that ORDER BY leaves equal are in the order of storing, as anywhere.
 */
export function keepFirst(
  query: SelectQuery,
  on: readonly Expression[],
  place: SqlPlace,
): SelectQuery {
  checkOrder(query.orderBy, on, place)
  if (query.records.length > 1)
    throw refuse(place, undefined, 'DISTINCT ON with records of several collections whole (*)')
  const asked = { query, on, orderBy: [...query.orderBy, ...listTies(query)] }
  const hasWindows = [...on, ...asked.orderBy.map(getExpression)].some(hasWindow)
  const rows = hasWindows ? computeBefore(asked, place) : asked
  const number: Expression = Object.freeze({
    kind: 'window',
    type: 'number',
    name: 'row_number',
    arguments: [],
    filter: undefined,
    partitionBy: rows.on,
    orderBy: rows.orderBy,
    frame: undefined,
  })
  const numbered = [...listOrders(rows.orderBy), { name: distinctOnName, expression: number }]
  const inner = makeInner(rows.query, numbered, place)
  const first = {
    left: inner.column(query.columns.length + numbered.length - 1),
    right: makeDigits('1'),
  }
  return {
    ...inner.select,
    where: makeComparison('=', first),
    orderBy: orderByColumns(rows.orderBy, inner, query.columns.length),
    limit: query.limit,
    offset: query.offset,
    limitBy: query.limitBy,
    offsetBy: query.offsetBy,
  }
}

type Rows = {
  readonly query: SelectQuery
  readonly on: readonly Expression[]
  readonly orderBy: readonly Order[]
}

/** Computes in a sub-query what the rows are numbered by: no window is ordered by another one of the same query. */
function computeBefore({ query, on, orderBy }: Rows, place: SqlPlace): Rows {
  const names = on.map((expression, at) => ({ name: `${distinctOnName} ${at + 1}`, expression }))
  const inner = makeInner(query, [...listOrders(orderBy), ...names], place)
  const first = query.columns.length
  return {
    query: inner.select,
    on: on.map((_, at) => inner.column(first + orderBy.length + at)),
    orderBy: orderByColumns(orderBy, inner, first),
  }
}

type Inner = {
  /** Gives the columns of the query that it is made of. */
  readonly select: SelectQuery
  readonly column: (at: number) => Expression
}

/** Makes a query of a sub-query, which has more columns behind its own. */
function makeInner(query: SelectQuery, more: readonly Column[], place: SqlPlace): Inner {
  const columns = [...query.columns, ...more]
  const id = place.reader.nextId()
  const inner: SelectQuery = { ...query, columns, orderBy: [], ...wholePage }
  const output = getOutput(inner).columns
  const column = (at: number): Expression => {
    const { type = 'null', isWhole, held } = output[at] ?? {}
    return Object.freeze({ kind: 'column', type, isWhole, held, relation: id, column: at })
  }
  const select = {
    ...makeSelect({
      columns: query.columns.map((each, at) => ({ ...each, expression: column(at) })),
      from: [{ kind: 'query', id, query: Object.freeze(inner) }],
      id: place.reader.nextId(),
    }),
    records: query.records.map(() => id),
  }
  return { select, column }
}

const getExpression = ({ expression }: Order) => expression

function listOrders(orderBy: readonly Order[]): readonly Column[] {
  return orderBy.map(({ expression }, at) => ({ name: `ORDER BY ${at + 1}`, expression }))
}

function orderByColumns(orderBy: readonly Order[], { column }: Inner, first: number): Order[] {
  return orderBy.map((order, at) => ({ ...order, expression: column(first + at) }))
}

const wholePage = { limit: undefined, offset: 0, limitBy: undefined, offsetBy: undefined } as const

/** As in PostgreSQL, ORDER BY begins with what DISTINCT ON names, in any order. */
function checkOrder(orderBy: readonly Order[], on: readonly Expression[], place: SqlPlace): void {
  const named = new Set(on.map(makeExactKey))
  const open = new Set(named)
  for (const { expression } of orderBy) {
    if (open.size === 0) return
    const text = makeExactKey(expression)
    if (!named.has(text))
      throw refuse(place, undefined, 'DISTINCT ON of something that ORDER BY does not begin with')
    open.delete(text)
  }
}

/** The order of storing, for rows of one collection. */
function listTies({ grouped, from }: SelectQuery): readonly Order[] {
  const [only, ...others] = from
  if (grouped || others.length > 0 || only?.kind !== 'collection') return []
  const expression: Expression = Object.freeze({ kind: 'leaf', type: 'number', relation: only.id })
  return [{ expression, descending: false, nulls: undefined }]
}
