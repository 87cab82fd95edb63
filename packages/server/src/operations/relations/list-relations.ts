import { describeRelation } from '../../model/describe-relation.ts'
import type { Operation } from '../operation.ts'

export const listRelations: Operation<'listRelations', 'tenancy'> = async (
  { service },
  { params },
) => {
  const { catalog } = (await service.tenancy.loadTenant(params.app)).data
  return [...catalog.relations.values()].map((relation) => describeRelation(catalog, relation))
}
