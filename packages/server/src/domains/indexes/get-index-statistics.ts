import type { Operation } from '../operation.ts'
import { indexNameOf } from '../tenancy/index-ddl.ts'
import { namedIndex } from './find-index.ts'
import { indexUse } from './index-store.ts'
import { knownUse, statisticsView } from './index-view.ts'

export const getIndexStatistics: Operation<'getIndexStatistics'> = async (call, { params }) => {
  const { service } = call
  const tenant = await service.tenancy.tenant(params.app)
  const { collection, index } = namedIndex(tenant, params)
  const use = await indexUse(service.database, { schema: tenant.schema, table: collection.table })
  const known = await knownUse(call, tenant, { collection, use })
  return statisticsView(known.get(indexNameOf(index)))
}
