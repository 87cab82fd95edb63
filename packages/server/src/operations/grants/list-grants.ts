import type { Operation } from '../operation.ts'
import { describeGrant } from './describe-grant.ts'

export const listGrants: Operation<'listGrants', 'tenancy'> = async ({ service }, { params }) => {
  const { catalog } = (await service.tenancy.loadTenant(params.app)).data
  return { grants: [...catalog.grants.values()].map((grant) => describeGrant(catalog, grant)) }
}
