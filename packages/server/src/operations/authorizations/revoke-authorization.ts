import { refuseDeadCaller } from '../../services/access/lapsed-caller.ts'
import { runKilled } from '../../services/keys/run-killed.ts'
import type { Operation } from '../operation.ts'
import { requireAuthorization } from './granters.ts'
import { writeAuthorization } from './write-authorization.ts'

export const revokeAuthorization: Operation<
  'revokeAuthorization',
  'database' | 'tenants' | 'world'
> = async (call, { params: { app, id } }) => {
  const { tenants, world } = call.service
  const asked = await requireAuthorization(call, app, id)
  if (asked.revoked_at !== null) return { success: true, id, revoked_at: asked.revoked_at }
  refuseDeadCaller(call)
  return runKilled(tenants, tenants.system.authorizations.kill(asked), async () => {
    refuseDeadCaller(call)
    const one = await requireAuthorization(call, app, id)
    const revokedAt = one.revoked_at ?? new Date(world.now()).toISOString()
    if (one.revoked_at === null)
      await writeAuthorization(tenants, { ...one, revoked_at: revokedAt })
    return { success: true, id, revoked_at: revokedAt }
  })
}
