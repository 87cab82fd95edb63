import type { FieldPath } from '../../query/condition.ts'
import {
  type Expression,
  partsOf,
  type Query,
  queryOf,
  type Relation,
  relationsOf,
} from '../../query/tree/query.ts'

export type JoinField = { readonly model: string; readonly path: FieldPath }

/** The fields of collections by which a query joins: when one side changes, the other one's records are found by them. */
export function joinFieldsOf(query: Query): readonly JoinField[] {
  const found = new Map<string, JoinField>()
  visit(query, (field) => found.set(`${field.model} ${field.path.join('.')}`, field))
  return [...found.values()]
}

function visit(query: Query, take: (field: JoinField) => void): void {
  for (const table of query.with) visit(table.query, take)
  if (query.kind === 'set') {
    visit(query.left, take)
    visit(query.right, take)
    return
  }
  const relations = relationsOf(query.from)
  const models = new Map(
    relations.flatMap((one) => (one.kind === 'collection' ? [[one.id, one.model] as const] : [])),
  )
  for (const relation of relations) if (relation.kind === 'query') visit(relation.query, take)
  const tests = [query.where, ...query.from.flatMap(testsOf)]
  for (const test of tests) if (test !== undefined) visitTest(test, { models, take })
}

function testsOf(relation: Relation): readonly (Expression | undefined)[] {
  if (relation.kind !== 'join') return []
  return [relation.on, ...testsOf(relation.left), ...testsOf(relation.right)]
}

type Visit = {
  readonly models: ReadonlyMap<number, string>
  readonly take: (field: JoinField) => void
}

function visitTest(test: Expression, to: Visit): void {
  if (test.kind === 'compare' && test.operator === '=') {
    const sides = [fieldOf(test.left), fieldOf(test.right)]
    const [left, right] = sides
    if (left === undefined || right === undefined || left.relation === right.relation) return
    for (const { relation, path } of [left, right]) {
      const model = to.models.get(relation)
      if (model !== undefined) to.take({ model, path })
    }
    return
  }
  const inner = queryOf(test)
  if (inner !== undefined) visit(inner, to.take)
  if (test.kind === 'and') for (const part of partsOf(test)) visitTest(part, to)
}

function fieldOf(side: Expression): { relation: number; path: FieldPath } | undefined {
  if (side.kind === 'convert' || side.kind === 'cast') return fieldOf(side.argument)
  return side.kind === 'field' ? side : undefined
}
