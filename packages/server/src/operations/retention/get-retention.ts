import { requireCollection } from '../../services/access/find-sources.ts'
import { describeRetention } from '../../services/retention/describe-retention.ts'
import type { Operation } from '../operation.ts'

export const getRetention: Operation<'getRetention', 'world' | 'tenants'> = async (
  { service },
  { params },
) => {
  const tenant = await service.tenants.load(params.app)
  return describeRetention(requireCollection(tenant, params.collection), service.world.now())
}
