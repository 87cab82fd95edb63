import type { Operation } from '../operation.ts'
import { indexList } from './index-view.ts'

export const listIndexes: Operation<'listIndexes'> = async ({ service }, { params, query }) => {
  const tables = await service.tenancy.tenant(params.app)
  const withStatistics = query.include_stats === true
  const collections = [...tables.data.catalog.byName.values()]
  return indexList({ service, tables, withStatistics }, collections)
}
