import { requireDescribableApi } from '../../services/access/find-sources.ts'
import type { Operation } from '../operation.ts'
import { describeApi } from './describe-api.ts'

export const getApiCollection: Operation<'getApiCollection', 'tenants'> = async (
  { service, caller },
  { params },
) => {
  const tenant = await service.tenants.load(params.app)
  return describeApi(caller, tenant, requireDescribableApi(caller, tenant, params.name))
}
