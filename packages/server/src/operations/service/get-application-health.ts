import { areas } from '@tollbase/contract/route'
import type { Operation } from '../operation.ts'

export const getApplicationHealth: Operation<
  'getApplicationHealth',
  'tenants' | 'program'
> = async ({ service }, { params }) => {
  const { chain } = await service.tenants.load(params.app)
  return {
    status: chain.failure === undefined ? 'ok' : 'degraded',
    version: service.program.version,
    features: areas.map((area) => area.toLowerCase().replaceAll(' ', '_')),
  }
}
