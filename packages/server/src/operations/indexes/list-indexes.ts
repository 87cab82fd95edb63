import { listReadables } from '../../model/catalog.ts'
import type { Operation } from '../operation.ts'
import { describeIndexes } from './describe-index.ts'

export const listIndexes: Operation<
  'listIndexes',
  'database' | 'tenants' | 'payments' | 'indexBuilder'
> = async (call, { params, query }) => {
  const tenant = await call.service.tenants.load(params.app)
  const withStatistics = query.include_stats === true
  return describeIndexes({ call, tenant, withStatistics }, listReadables(tenant.data.catalog))
}
