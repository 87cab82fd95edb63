import type { Operation } from '../operation.ts'
import { grantView } from './describe-grant.ts'

export const listGrants: Operation<'listGrants'> = async ({ service }, { params }) => {
  const { catalog } = (await service.tenancy.tenant(params.app)).data
  return { grants: [...catalog.grants.values()].map((grant) => grantView(catalog, grant)) }
}
