import { type Expression, listRelations, type Query } from './query.ts'

/** Lists every expression of a query, those of its sub-queries included. */
export function listAllExpressions(query: Query): readonly Expression[] {
  const order = query.orderBy.map((each) => each.expression)
  const tables = query.with.flatMap((table) => listAllExpressions(table.query))
  if (query.kind === 'set')
    return [
      ...tables,
      ...listAllExpressions(query.left),
      ...listAllExpressions(query.right),
      ...order,
    ]
  const optional = [query.where, query.having].flatMap((each) => (each === undefined ? [] : [each]))
  const inner = listRelations(query.from).flatMap((relation) =>
    relation.kind === 'query'
      ? listAllExpressions(relation.query)
      : relation.kind === 'function'
        ? relation.arguments
        : [],
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
