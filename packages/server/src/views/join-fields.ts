import type { FieldPath } from '../query/condition.ts'
import { type Expression, listRelations, type Query, type Relation } from '../query/tree/query.ts'
import { collectRelations, listConjuncts, listReferences } from './expression-relations.ts'

/** A field by which records of a collection are looked up. */
export type JoinField = { readonly model: string; readonly path: FieldPath }

/**
 * Lists the fields that joins of a normalized query compare for equality, each once. With an index on each of them,
 * a change on either side of a join costs in proportion to the rows that it matches.
 */
export function listJoinFields(query: Query): readonly JoinField[] {
  const found = new Map<string, JoinField>()
  visitQuery(query, found)
  return [...found.values()]
}

type JoinFieldMap = Map<string, JoinField>

function visitQuery(query: Query, found: JoinFieldMap): void {
  if (query.kind === 'set') {
    visitQuery(query.left, found)
    visitQuery(query.right, found)
    return
  }
  const relations = listRelations(query.from)
  const origins = new Map(
    relations.flatMap((relation) => {
      const model = findOrigin(relation)
      return model === undefined ? [] : [[relation.id, model] as const]
    }),
  )
  if (relations.length > 1)
    for (const test of [...listConjuncts(query.where), ...query.from.flatMap(listTests)])
      visitTest(test, origins, found)
  for (const relation of relations) if (relation.kind === 'query') visitQuery(relation.query, found)
}

/** Finds the collection whose records a relation gives, also through sub-queries that give them whole. */
function findOrigin(relation: Relation): string | undefined {
  if (relation.kind === 'collection') return relation.model
  if (relation.kind !== 'query' || relation.query.kind !== 'select') return undefined
  const { records, from } = relation.query
  const [record] = records
  const inner = listRelations(from).find(({ id }) => id === record)
  return inner === undefined ? undefined : findOrigin(inner)
}

function listTests(relation: Relation): readonly Expression[] {
  if (relation.kind !== 'join') return []
  return [...listConjuncts(relation.on), ...listTests(relation.left), ...listTests(relation.right)]
}

function visitTest(
  test: Expression,
  origins: ReadonlyMap<number, string>,
  found: JoinFieldMap,
): void {
  const add = (relation: number, path: FieldPath) => {
    const model = origins.get(relation)
    if (model !== undefined) found.set(JSON.stringify([model, path]), { model, path })
  }
  if (test.kind === 'condition') {
    for (const { path, to } of listReferences(test.condition)) {
      add(test.relation, path)
      if (test.parent !== undefined) add(test.parent, to)
    }
  }
  if (test.kind !== 'compare' || test.operator !== '=') return
  const [left, right] = [collectRelations(test.left), collectRelations(test.right)]
  if (left.size === 0 || right.size === 0 || [...left].some((id) => right.has(id))) return
  for (const side of [test.left, test.right])
    if (side.kind === 'field') add(side.relation, side.path)
}
