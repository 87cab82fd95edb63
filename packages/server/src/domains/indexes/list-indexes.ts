import type { Operation } from '../operation.ts'
import { readables } from '../tenancy/catalog.ts'
import { indexList } from './index-view.ts'

export const listIndexes: Operation<'listIndexes'> = async ({ service }, { params, query }) => {
  const tables = await service.tenancy.tenant(params.app)
  const withStatistics = query.include_stats === true
  return indexList({ service, tables, withStatistics }, readables(tables.data.catalog))
}
