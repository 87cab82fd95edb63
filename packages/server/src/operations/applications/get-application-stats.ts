import type { Database } from '../../database/database.ts'
import { readCurrentStats } from '../../services/collections/current-stats.ts'
import type { Operation } from '../operation.ts'

export const getApplicationStats: Operation<
  'getApplicationStats',
  'world' | 'database' | 'tenants' | 'queryRunner'
> = async ({ service }, { params }) => {
  const tenant = await service.tenants.load(params.app)
  const stats = [...(await readCurrentStats(service, tenant)).values()]
  return {
    total_collections: tenant.data.catalog.collections.size,
    total_indexes: tenant.data.catalog.indexes.size,
    total_documents: stats.reduce((sum, one) => sum + one.documents, 0),
    storage_size: stats.reduce((sum, one) => sum + one.bytes, 0),
    index_size: 0,
    active_connections: countBusy(service.database) + countBusy(service.queryRunner.database),
  }
}

function countBusy({ stats }: Database): number {
  const { total, idle } = stats()
  return total - idle
}
