import { indexNameOf } from '../../projections/index-ddl.ts'
import { indexUse } from '../../services/indexes/index-store.ts'
import type { Operation } from '../operation.ts'
import { knownUse, statisticsView } from './describe-index.ts'
import { namedIndex } from './require-index.ts'

export const getIndexStatistics: Operation<'getIndexStatistics'> = async (call, { params }) => {
  const { service } = call
  const tenant = await service.tenancy.tenant(params.app)
  const { collection, index } = namedIndex(tenant, params)
  const use = await indexUse(service.database, { schema: tenant.schema, table: collection.table })
  const known = await knownUse(call, tenant, { collection, use })
  return statisticsView(known.get(indexNameOf(index)))
}
