import {
  type Expression,
  type Order,
  outputOf,
  type Relation,
  relationsOf,
  type SelectQuery,
} from '../query/tree/query.ts'
import { decidedWindow } from './decide-window.ts'
import { mapExpression } from './map-expression.ts'

/** Aggregates whose value depends on the order of rows. */
const ordered: ReadonlySet<string> = new Set([
  'array_agg',
  'json_agg',
  'jsonb_agg',
  'string_agg',
  'first',
])

/**
 * The expressions of a SELECT with orders that leave nothing open: PostgreSQL would take rows that are equal in the
 * order of an aggregate or a window as it finds them, which is another way once some of them were replaced.
 */
export function decideOrders(select: SelectQuery): SelectQuery {
  const ofRows = () => relationsOf(select.from).flatMap(tiesOfRelation)
  const ofWindow = () => (select.grouped ? select.groupBy.flatMap(tiesOf) : ofRows())
  const inside = (each: Expression): Expression => mapExpression(each, replace)
  const replace = (each: Expression): Expression | undefined => {
    if (each.kind === 'aggregate' && ordered.has(each.name)) {
      const list = each.arguments.map((part) => (each.distinct ? shortOf(part) : part))
      if (!each.distinct) return { ...each, orderBy: [...each.orderBy, ...ordersOf(ofRows())] }
      // What is different has no order but that of the arguments, which are to be named as they are.
      const orderBy = each.orderBy.map((order) => {
        return { ...order, expression: shortOf(order.expression) }
      })
      return { ...each, arguments: list, orderBy }
    }
    if (each.kind !== 'window') return undefined
    const decided = decidedWindow(each)
    if (decided === 'as it is' || decided === undefined) return undefined
    return {
      ...each,
      frame: decided.frame,
      arguments: each.arguments.map(inside),
      filter: each.filter === undefined ? undefined : inside(each.filter),
      partitionBy: each.partitionBy.map(inside),
      orderBy: [
        ...each.orderBy.map((order) => ({ ...order, expression: inside(order.expression) })),
        ...ordersOf(ofWindow()),
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
  return outputOf(relation.query).columns.flatMap(({ type }, column) =>
    tiesOf({ kind: 'column', type, relation: id, column }),
  )
}

/** Lists and objects have no order among themselves; their texts have. */
export function tiesOf(expression: Expression): readonly Expression[] {
  if (expression.type !== 'json') return [expression]
  return [expression, { kind: 'cast', type: 'text', argument: expression }]
}

export function ordersOf(expressions: readonly Expression[]): readonly Order[] {
  return expressions.map((expression) => ({ expression, descending: false, nulls: undefined }))
}

/** Of values that are equal but differ in digits (1 and 1.0) always the same one. */
export function shortOf(expression: Expression): Expression {
  const { type } = expression
  return type === 'json' || type === 'number'
    ? { kind: 'cast', type, argument: expression }
    : expression
}
