import { readableOf } from '../../services/access/authorize-collections.ts'
import type { Operation } from '../operation.ts'
import { indexList } from './describe-index.ts'

export const listCollectionIndexes: Operation<'listCollectionIndexes'> = async (
  call,
  { params, query },
) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  const collection = readableOf(tenant, params.collection)
  const withStatistics = query.include_stats === true
  return { indexes: await indexList({ call, tenant, withStatistics }, [collection]) }
}
