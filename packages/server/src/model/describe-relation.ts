import type { Catalog } from './catalog.ts'
import type { RelationDefinition } from './definitions.ts'
import type { Collection } from './readable.ts'

export type RelationDescription = ReturnType<typeof describeRelation>

/** Describes a relation as callers see it. Deleting a collection deletes its relations, so both ends exist. */
export function describeRelation(catalog: Catalog, relation: RelationDefinition) {
  return {
    id: relation.id,
    parent_collection: catalog.byId.get(relation.parent)?.name ?? relation.parent,
    parent_field: relation.parent_field,
    child_collection: catalog.byId.get(relation.child)?.name ?? relation.child,
    child_field: relation.child_field,
    created_at: relation.created_at,
  }
}

/** Describes, by collection id, the relations whose ends the caller may both know. */
export function describeRelations(
  catalog: Catalog,
  mayKnow: (collection: Collection) => boolean,
): ReadonlyMap<string, readonly RelationDescription[]> {
  const views = new Map<string, RelationDescription[]>()
  for (const relation of catalog.relations.values()) {
    const ends = [...new Set([relation.parent, relation.child])]
    const known = ends.every((id) => {
      const collection = catalog.byId.get(id)
      return collection !== undefined && mayKnow(collection)
    })
    if (!known) continue
    for (const id of ends)
      views.set(id, [...(views.get(id) ?? []), describeRelation(catalog, relation)])
  }
  return views
}
