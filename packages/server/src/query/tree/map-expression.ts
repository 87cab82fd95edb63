import { countSteps } from '../steps.ts'
import { type Expression, findSubQuery, type Order, type Query, type Relation } from './query.ts'

type Replace = (expression: Expression) => Expression | undefined

/**
 * Replaces every part of the expression for which `replace` returns something, the outermost first; in sub-queries
 * too, which may use relations around them.
 */
export function mapExpression(expression: Expression, replace: Replace): Expression {
  countSteps(2)
  const own = replace(expression)
  if (own !== undefined) return own
  const inner = (each: Expression) => mapExpression(each, replace)
  const optional = (each: Expression | undefined) => (each === undefined ? undefined : inner(each))
  switch (expression.kind) {
    case 'call':
    case 'and':
    case 'or':
    case 'grouping':
      return { ...expression, arguments: expression.arguments.map(inner) }
    case 'aggregate':
      return {
        ...expression,
        arguments: expression.arguments.map(inner),
        orderBy: mapOrder(expression.orderBy, replace),
        filter: optional(expression.filter),
      }
    case 'window':
      return {
        ...expression,
        arguments: expression.arguments.map(inner),
        filter: optional(expression.filter),
        partitionBy: expression.partitionBy.map(inner),
        orderBy: mapOrder(expression.orderBy, replace),
      }
    case 'case':
      return {
        ...expression,
        branches: expression.branches.map(({ when, value }) => ({
          when: inner(when),
          value: inner(value),
        })),
        otherwise: optional(expression.otherwise),
      }
    case 'compare':
      return { ...expression, left: inner(expression.left), right: inner(expression.right) }
    case 'exists':
    case 'scalar':
      return { ...expression, query: mapQuery(expression.query, replace) }
    case 'in-query':
      return {
        ...expression,
        arguments: expression.arguments.map(inner),
        query: mapQuery(expression.query, replace),
      }
    case 'field':
    case 'record':
    case 'leaf':
    case 'column':
    case 'constant':
    case 'parameter':
      return expression
    case 'condition':
      return expression.record === undefined
        ? expression
        : { ...expression, record: inner(expression.record) }
    default:
      return { ...expression, argument: inner(expression.argument) }
  }
}

export function mapOrder(orderBy: readonly Order[], replace: Replace): readonly Order[] {
  return orderBy.map((order) => ({
    ...order,
    expression: mapExpression(order.expression, replace),
  }))
}

/** Returns true if an expression of the query, or of the queries in its FROM, contains a query. */
export function hasSubQueries(query: Query): boolean {
  let isFound = false
  mapQuery(query, (each) => {
    if (findSubQuery(each) !== undefined) isFound = true
    return undefined
  })
  return isFound
}

/** Replaces parts in every expression of a query. */
export function mapQuery(query: Query, replace: Replace): Query {
  const optional = (each: Expression | undefined) =>
    each === undefined ? undefined : mapExpression(each, replace)
  const common = {
    with: query.with.map((table) => ({ ...table, query: mapQuery(table.query, replace) })),
    orderBy: mapOrder(query.orderBy, replace),
  }
  if (query.kind === 'set')
    return {
      ...query,
      ...common,
      left: mapQuery(query.left, replace),
      right: mapQuery(query.right, replace),
    }
  return {
    ...query,
    ...common,
    columns: query.columns.map((column) => ({
      ...column,
      expression: mapExpression(column.expression, replace),
    })),
    from: query.from.map((relation) => mapRelation(relation, replace)),
    where: optional(query.where),
    groupBy: query.groupBy.map((each) => mapExpression(each, replace)),
    having: optional(query.having),
  }
}

function mapRelation(relation: Relation, replace: Replace): Relation {
  switch (relation.kind) {
    case 'query':
      return { ...relation, query: mapQuery(relation.query, replace) }
    case 'join':
      return {
        ...relation,
        left: mapRelation(relation.left, replace),
        right: mapRelation(relation.right, replace),
        on: relation.on === undefined ? undefined : mapExpression(relation.on, replace),
      }
    case 'function':
      return {
        ...relation,
        arguments: relation.arguments.map((each) => mapExpression(each, replace)),
      }
    default:
      return relation
  }
}

/** Collects the relations that an expression uses, in its sub-queries too. */
export function collectUsed(expression: Expression): ReadonlySet<number> {
  const used = new Set<number>()
  mapExpression(expression, noteUses(used))
  return used
}

/** Collects the relations that relations of FROM use themselves, as functions and LATERAL do. */
export function collectUsedInside(relation: Relation): ReadonlySet<number> {
  const used = new Set<number>()
  mapRelation(relation, noteUses(used))
  return used
}

function noteUses(used: Set<number>): Replace {
  return (each) => {
    if ('relation' in each) used.add(each.relation)
    if (each.kind === 'condition' && each.parent !== undefined) used.add(each.parent)
    return undefined
  }
}
