import { describableQuery } from '../../services/queries/query-access.ts'
import type { Operation } from '../operation.ts'
import { queryView } from './describe-query.ts'

export const getQuery: Operation<'getQuery'> = async (call, { params, query }) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  const { version } = query
  return queryView(call, tenant, describableQuery(call, tenant, { name: params.name, version }))
}
