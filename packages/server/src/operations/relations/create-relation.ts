import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { RelationDefinition } from '../../model/definitions.ts'
import { describeRelation } from '../../model/describe-relation.ts'
import { type Collection, makeCollection } from '../../model/readable.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { buildLeadingIndex } from '../../services/collections/leading-index.ts'
import { buildCollection } from '../../services/collections/new-collection.ts'
import type { Operation } from '../operation.ts'

export const createRelation: Operation<'createRelation', 'world' | 'tenants'> = async (
  { service },
  { params, body },
) => {
  const parentField = parseFieldPath(body.parent_field, '/parent_field').join('.')
  const childField = parseFieldPath(body.child_field, '/child_field').join('.')
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    const { catalog } = tenant.data
    const made: Definition[] = []
    const parent = findOrBuild(service.world, tenant, { name: body.parent_collection, made })
    const child = findOrBuild(service.world, tenant, { name: body.child_collection, made })
    const ends = {
      parent: parent.id,
      parent_field: parentField,
      child: child.id,
      child_field: childField,
    }
    const same = [...catalog.relations.values()].find((one) => isSame(one, ends))
    if (same === undefined && catalog.relations.size >= limits.relationsPerApplicationMax) {
      throw new Fault('CONFLICT', {
        message: `An application has at most ${limits.relationsPerApplicationMax} relations`,
      })
    }
    const wanted = { type: 'hash', number: catalog.nextNumber + made.length } as const
    const parentIndex = buildLeadingIndex(service.world, parent, {
      ...wanted,
      field: parentField,
      others: [],
    })
    const childIndex = buildLeadingIndex(service.world, child, {
      ...wanted,
      field: childField,
      others: parentIndex,
    })
    const relation: RelationDefinition = same ?? {
      id: `rel_${service.world.randomBytes(12).toString('hex')}`,
      ...ends,
      created_at: new Date(service.world.now()).toISOString(),
    }
    const end = { kind: 'relation', id: relation.id, body: relation } as const
    // One write, so that a relation that is refused leaves no collection behind.
    const changes = [...made, ...parentIndex, ...childIndex, ...(same === undefined ? [end] : [])]
    if (changes.length > 0) await define(tenant, changes)
    return {
      ...describeRelation(tenant.data.catalog, relation),
      indexes_created: {
        parent_index: parentIndex.length > 0,
        child_index: childIndex.length > 0,
      },
    }
  })
}

/** Finds an end of the relation, or adds a collection that is made for it. */
function findOrBuild(
  world: World,
  tenant: Tenant,
  { name, made }: { readonly name: string; readonly made: Definition[] },
): Collection {
  const found = tenant.data.catalog.byName.get(name)
  if (found !== undefined) return found
  // Both ends may be one collection.
  for (const { kind, body } of made)
    if (kind === 'collection' && body?.name === name) return makeCollection(body, [])
  const body = buildCollection(world, tenant, { request: { name }, others: made })
  made.push({ kind: 'collection', id: body.id, body })
  return makeCollection(body, [])
}

type Ends = Pick<RelationDefinition, 'parent' | 'parent_field' | 'child' | 'child_field'>

function isSame(one: Ends, other: Ends): boolean {
  return (
    one.parent === other.parent &&
    one.parent_field === other.parent_field &&
    one.child === other.child &&
    one.child_field === other.child_field
  )
}
