import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { RelationDefinition } from '../../model/definitions.ts'
import { describeRelation } from '../../model/describe-relation.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import { define } from '../../services/applications/define.ts'
import { buildLeadingIndex } from '../../services/collections/leading-index.ts'
import { ensureCollectionLocked } from '../../services/collections/new-collection.ts'
import type { Operation } from '../operation.ts'

export const createRelation: Operation<'createRelation', 'world' | 'tenants'> = async (
  { service },
  { params, body },
) => {
  const parentField = parseFieldPath(body.parent_field, '/parent_field').join('.')
  const childField = parseFieldPath(body.child_field, '/child_field').join('.')
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    const parent = await ensureCollectionLocked(service.world, tenant, {
      name: body.parent_collection,
    })
    const child = await ensureCollectionLocked(service.world, tenant, {
      name: body.child_collection,
    })
    const { catalog } = tenant.data
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
    const wanted = { type: 'hash', number: catalog.nextNumber } as const
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
    const made = { kind: 'relation', id: relation.id, body: relation } as const
    const changes = [...parentIndex, ...childIndex, ...(same === undefined ? [made] : [])]
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

type Ends = Pick<RelationDefinition, 'parent' | 'parent_field' | 'child' | 'child_field'>

function isSame(one: Ends, other: Ends): boolean {
  return (
    one.parent === other.parent &&
    one.parent_field === other.parent_field &&
    one.child === other.child &&
    one.child_field === other.child_field
  )
}
