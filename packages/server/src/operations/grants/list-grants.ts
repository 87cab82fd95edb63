import type { Operation } from '../operation.ts'
import { describeGrant } from './describe-grant.ts'

export const listGrants: Operation<'listGrants', 'tenants'> = async ({ service }, { params }) => {
  const { catalog } = (await service.tenants.load(params.app)).data
  return { grants: [...catalog.grants.values()].map((grant) => describeGrant(catalog, grant)) }
}
