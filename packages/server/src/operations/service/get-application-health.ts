import { areas } from '@tollbase/contract/route'
import type { Operation } from '../operation.ts'

export const getApplicationHealth: Operation<'getApplicationHealth'> = async (
  { service },
  { params },
) => {
  const { chain } = await service.tenancy.loadTenant(params.app)
  return {
    status: chain.failure === undefined ? 'ok' : 'degraded',
    version: service.info.version,
    features: areas.map((area) => area.toLowerCase().replaceAll(' ', '_')),
  }
}
