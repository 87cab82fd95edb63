import { requireDescribableQuery } from '../../services/queries/query-access.ts'
import type { Operation } from '../operation.ts'
import { describeQuery } from './describe-query.ts'

export const getQuery: Operation<'getQuery', 'tenants' | 'queryPlans'> = async (
  call,
  { params, query },
) => {
  const tenant = await call.service.tenants.load(params.app)
  const { version } = query
  return describeQuery(
    call,
    tenant,
    requireDescribableQuery(call.caller, tenant, { name: params.name, version }),
  )
}
