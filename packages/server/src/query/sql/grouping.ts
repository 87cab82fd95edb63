import { type Expression, partsOf, type Query, queryOf, relationsOf } from '../tree/query.ts'

/** Whether an aggregate stands in the expression, sub-queries aside. */
export function hasAggregate(expression: Expression): boolean {
  return expression.kind === 'aggregate' || partsOf(expression).some(hasAggregate)
}

/** What an expression uses of the relations that is neither grouped by nor inside an aggregate. */
export function ungroupedPart(
  expression: Expression,
  own: ReadonlySet<number>,
  groups: ReadonlySet<string>,
): Expression | undefined {
  if (groups.has(JSON.stringify(expression)) || expression.kind === 'aggregate') return undefined
  if (isOfRelation(expression) && own.has(expression.relation)) return expression
  const query = queryOf(expression)
  const inQuery = query === undefined ? [] : expressionsOf(query)
  for (const part of [...partsOf(expression), ...inQuery]) {
    const found = ungroupedPart(part, own, groups)
    if (found !== undefined) return found
  }
  return undefined
}

/** Whether an expression uses relations of none but outer queries (and does use some). */
export function isOfOuter(expressions: readonly Expression[], own: ReadonlySet<number>): boolean {
  const used = new Set(expressions.flatMap(relationsUsed))
  return used.size > 0 && ![...used].some((relation) => own.has(relation))
}

function isOfRelation(expression: Expression): expression is Expression & { relation: number } {
  return ['field', 'column', 'record', 'leaf', 'condition'].includes(expression.kind)
}

function relationsUsed(expression: Expression): readonly number[] {
  const own = isOfRelation(expression) ? [expression.relation] : []
  return [...own, ...partsOf(expression).flatMap(relationsUsed)]
}

/** Every expression that stands in a query, its own sub-queries included. */
export function expressionsOf(query: Query): readonly Expression[] {
  const order = query.orderBy.map((each) => each.expression)
  const tables = query.with.flatMap((table) => expressionsOf(table.query))
  if (query.kind === 'set')
    return [...tables, ...expressionsOf(query.left), ...expressionsOf(query.right), ...order]
  const optional = [query.where, query.having].flatMap((each) => (each === undefined ? [] : [each]))
  const inner = relationsOf(query.from).flatMap((relation) =>
    relation.kind === 'query' ? expressionsOf(relation.query) : [],
  )
  const columns = query.columns.map((column) => column.expression)
  return [
    ...tables,
    ...inner,
    ...columns,
    ...optional,
    ...query.groupBy,
    ...order,
    ...joinTests(query.from),
  ]
}

function joinTests(from: Extract<Query, { kind: 'select' }>['from']): readonly Expression[] {
  return from.flatMap((relation) =>
    relation.kind === 'join'
      ? [
          ...(relation.on === undefined ? [] : [relation.on]),
          ...joinTests([relation.left, relation.right]),
        ]
      : [],
  )
}
