import { awaitWithin } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { getIndexState } from './describe-index.ts'
import { requireNamedIndex } from './require-index.ts'

/** The time that the reply waits for the end. */
const waitMs = 5_000

export const rebuildIndex: Operation<'rebuildIndex', 'world' | 'tenants' | 'indexBuilder'> = async (
  { service },
  { params, body },
) => {
  const tenant = await service.tenants.load(params.app)
  const { index } = requireNamedIndex(tenant, params)
  const rebuilding = service.indexBuilder.rebuild(tenant, index).then(
    () => 'done' as const,
    (error: unknown) => error,
  )
  const ms = body.background === true ? 1 : waitMs
  const outcome = await awaitWithin(rebuilding, { world: service.world, ms, otherwise: 'working' })
  if (outcome instanceof Error)
    throw new Fault('UNAVAILABLE', { message: outcome.message, retryAfterSeconds: 5 })
  const isDone = outcome === 'done'
  return {
    success: true,
    message: `Index ${index.name} ${isDone ? 'is rebuilt' : 'is being rebuilt; its status says how far'}`,
    status: isDone ? 'active' : getIndexState(service.indexBuilder, tenant, index),
  }
}
