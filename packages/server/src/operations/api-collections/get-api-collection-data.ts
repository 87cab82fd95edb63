import { requireReadableApi } from '../../services/access/find-sources.ts'
import { answerApi } from '../../services/api-collections/answer-api.ts'
import type { Operation } from '../operation.ts'

export const getApiCollectionData: Operation<
  'getApiCollectionData',
  'tenants' | 'payments' | 'upstreams'
> = async (call, { params, query }) => {
  const tenant = await call.service.tenants.load(params.app)
  const { collection, free } = requireReadableApi(call.caller, tenant, params.name)
  return answerApi(call, { tenant, collection, free, maxKb: query.max_kb })
}
