import { readableOf } from '../collections/visibility.ts'
import type { Operation } from '../operation.ts'
import { indexList } from './index-view.ts'

export const listCollectionIndexes: Operation<'listCollectionIndexes'> = async (
  call,
  { params, query },
) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  const collection = readableOf(tenant, params.collection)
  const withStatistics = query.include_stats === true
  return { indexes: await indexList({ call, tenant, withStatistics }, [collection]) }
}
