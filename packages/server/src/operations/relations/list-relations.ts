import { describeRelation } from '../../model/describe-relation.ts'
import type { Operation } from '../operation.ts'

export const listRelations: Operation<'listRelations', 'tenants'> = async (
  { service },
  { params },
) => {
  const { catalog } = (await service.tenants.load(params.app)).data
  return [...catalog.relations.values()].map((relation) => describeRelation(catalog, relation))
}
