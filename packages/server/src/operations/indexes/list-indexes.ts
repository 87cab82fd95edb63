import { readables } from '../../model/catalog.ts'
import type { Operation } from '../operation.ts'
import { indexList } from './describe-index.ts'

export const listIndexes: Operation<'listIndexes'> = async (call, { params, query }) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  const withStatistics = query.include_stats === true
  return indexList({ call, tenant, withStatistics }, readables(tenant.data.catalog))
}
