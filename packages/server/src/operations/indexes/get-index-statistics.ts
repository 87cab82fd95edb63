import { getIndexName } from '../../projections/index-ddl.ts'
import { readIndexUse } from '../../services/indexes/index-store.ts'
import type { Operation } from '../operation.ts'
import { describeIndexUse, filterKnownUse } from './describe-index.ts'
import { requireNamedIndex } from './require-index.ts'

export const getIndexStatistics: Operation<'getIndexStatistics', 'database' | 'tenants'> = async (
  call,
  { params },
) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  const { collection, index } = requireNamedIndex(tenant, params)
  const use = await readIndexUse(service.database, {
    schema: tenant.schema,
    table: collection.table,
  })
  const known = await filterKnownUse(call, tenant, { collection, use })
  return describeIndexUse(known.get(getIndexName(index)))
}
