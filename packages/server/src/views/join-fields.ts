import type { FieldPath } from '../query/condition.ts'
import { type Expression, type Query, type Relation, relationsOf } from '../query/tree/query.ts'
import { conjuncts, referencesOf, relationsIn } from './expression-relations.ts'

/** A field by which records of a collection are looked up. */
export type JoinField = { readonly model: string; readonly path: FieldPath }

/**
 * The fields that joins of a query in normal form compare for equality, each once. With an index on each of them a
 * change on either side of a join costs what it matches, not what there is.
 */
export function joinFieldsOf(query: Query): readonly JoinField[] {
  const found = new Map<string, JoinField>()
  visitQuery(query, found)
  return [...found.values()]
}

type Found = Map<string, JoinField>

function visitQuery(query: Query, found: Found): void {
  if (query.kind === 'set') {
    visitQuery(query.left, found)
    visitQuery(query.right, found)
    return
  }
  const relations = relationsOf(query.from)
  const origins = new Map(
    relations.flatMap((relation) => {
      const model = originOf(relation)
      return model === undefined ? [] : [[relation.id, model] as const]
    }),
  )
  if (relations.length > 1)
    for (const test of [...conjuncts(query.where), ...query.from.flatMap(testsOf)])
      visitTest(test, origins, found)
  for (const relation of relations) if (relation.kind === 'query') visitQuery(relation.query, found)
}

/** The collection whose records a relation gives, be it through sub-queries that give them whole. */
function originOf(relation: Relation): string | undefined {
  if (relation.kind === 'collection') return relation.model
  if (relation.kind !== 'query' || relation.query.kind !== 'select') return undefined
  const { records, from } = relation.query
  const [record] = records
  const inner = relationsOf(from).find(({ id }) => id === record)
  return inner === undefined ? undefined : originOf(inner)
}

function testsOf(relation: Relation): readonly Expression[] {
  if (relation.kind !== 'join') return []
  return [...conjuncts(relation.on), ...testsOf(relation.left), ...testsOf(relation.right)]
}

function visitTest(test: Expression, origins: ReadonlyMap<number, string>, found: Found): void {
  const add = (relation: number, path: FieldPath) => {
    const model = origins.get(relation)
    if (model !== undefined) found.set(JSON.stringify([model, path]), { model, path })
  }
  if (test.kind === 'condition') {
    for (const { path, to } of referencesOf(test.condition)) {
      add(test.relation, path)
      if (test.parent !== undefined) add(test.parent, to)
    }
  }
  if (test.kind !== 'compare' || test.operator !== '=') return
  const [left, right] = [relationsIn(test.left), relationsIn(test.right)]
  if (left.size === 0 || right.size === 0 || [...left].some((id) => right.has(id))) return
  for (const side of [test.left, test.right])
    if (side.kind === 'field') add(side.relation, side.path)
}
