import { aggregates } from '../query/tree/aggregates.ts'
import { mapExpression } from '../query/tree/map-expression.ts'
import {
  type Expression,
  getOutput,
  listRelations,
  type Order,
  type Relation,
  type SelectQuery,
} from '../query/tree/query.ts'
import { decideWindow } from './decide-window.ts'

/** Aggregates whose value depends on the order of rows. */
const ordered: ReadonlySet<string> = new Set([
  'array_agg',
  'json_agg',
  'jsonb_agg',
  'jsonb_object_agg',
  'json_object_agg',
  'string_agg',
  'first',
])

/**
 * Completes the orders inside a SELECT's expressions so that they leave nothing open: PostgreSQL would take rows
 * that are equal in the order of an aggregate or a window as it finds them, and that changes once some of them were
 * replaced.
 */
export function decideOrders(select: SelectQuery): SelectQuery {
  const ofRows = () => listRelations(select.from).flatMap(tiesOfRelation)
  const ofWindow = () => (select.grouped ? select.groupBy.flatMap(listTies) : ofRows())
  const inside = (each: Expression): Expression => mapExpression(each, replace)
  const replace = (each: Expression): Expression | undefined => {
    if (each.kind === 'aggregate' && ordered.has(each.name)) {
      const list = each.arguments.map((part) => (each.distinct ? shortenNumbers(part) : part))
      if (!each.distinct) return { ...each, orderBy: [...each.orderBy, ...toOrders(ofRows())] }
      // With DISTINCT the order may only name the arguments, exactly as they are written.
      const orderBy = each.orderBy.map((order) => {
        return { ...order, expression: shortenNumbers(order.expression) }
      })
      return { ...each, arguments: list, orderBy }
    }
    if (each.kind === 'aggregate' && aggregates.get(each.name)?.within === true)
      return { ...each, arguments: each.arguments.map(shortenNumbers) }
    if (each.kind !== 'window') return undefined
    const decided = decideWindow(each)
    if (decided === 'as it is' || decided === undefined) return undefined
    return {
      ...each,
      frame: decided.frame,
      arguments: each.arguments.map(inside),
      filter: each.filter === undefined ? undefined : inside(each.filter),
      partitionBy: each.partitionBy.map(inside),
      orderBy: [
        ...each.orderBy.map((order) => ({ ...order, expression: inside(order.expression) })),
        ...toOrders(ofWindow()),
      ],
    }
  }
  return {
    ...select,
    columns: select.columns.map((each) => ({ ...each, expression: inside(each.expression) })),
    having: select.having === undefined ? undefined : inside(select.having),
    orderBy: select.orderBy.map((each) => ({ ...each, expression: inside(each.expression) })),
  }
}

function tiesOfRelation(relation: Exclude<Relation, { kind: 'join' }>): readonly Expression[] {
  const { id } = relation
  if (relation.kind === 'collection') return [{ kind: 'leaf', type: 'number', relation: id }]
  if (relation.kind === 'common') return []
  if (relation.kind === 'function') {
    const { results, hasOrdinality } = relation
    const column = results.length
    const place = { kind: 'column', type: 'number', relation: id, column } as const
    const values = results.flatMap(({ type }, at) =>
      listTies({ kind: 'column', type, relation: id, column: at }),
    )
    return [...values, ...(hasOrdinality ? [place] : [])]
  }
  return getOutput(relation.query).columns.flatMap(({ type }, column) =>
    listTies({ kind: 'column', type, relation: id, column }),
  )
}

/**
 * Adds the text as a second criterion for JSON: lists and objects have no order among themselves, but their texts
 * have.
 */
export function listTies(expression: Expression): readonly Expression[] {
  if (expression.type !== 'json') return [expression]
  return [expression, { kind: 'cast', type: 'text', argument: expression }]
}

export function toOrders(expressions: readonly Expression[]): readonly Order[] {
  return expressions.map((expression) => ({ expression, descending: false, nulls: undefined }))
}

/** Gives equal values that differ in digits (1 and 1.0) the same form. */
export function shortenNumbers(expression: Expression): Expression {
  const { type } = expression
  return type === 'json' || type === 'number'
    ? { kind: 'cast', type, argument: expression }
    : expression
}
