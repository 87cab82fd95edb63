import { requireCollectionOrView } from '../../services/access/find-sources.ts'
import type { Operation } from '../operation.ts'
import { describeIndexes } from './describe-index.ts'

export const listCollectionIndexes: Operation<
  'listCollectionIndexes',
  'database' | 'tenants' | 'payments' | 'indexBuilder'
> = async (call, { params, query }) => {
  const tenant = await call.service.tenants.load(params.app)
  const collection = requireCollectionOrView(tenant, params.collection)
  const withStatistics = query.include_stats === true
  return { indexes: await describeIndexes({ call, tenant, withStatistics }, [collection]) }
}
