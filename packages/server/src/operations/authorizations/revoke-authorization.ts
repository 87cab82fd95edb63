import type { Operation } from '../operation.ts'
import { requireAuthorization } from './granters.ts'
import { writeAuthorization } from './write-authorization.ts'

export const revokeAuthorization: Operation<'revokeAuthorization', 'tenants' | 'world'> = async (
  call,
  { params: { app, id } },
) => {
  const { tenants, world } = call.service
  const { definitions, authorizations } = tenants.system
  return definitions.run(async () => {
    const one = requireAuthorization(call, app, id)
    if (one.revoked_at !== null) return { success: true, id, revoked_at: one.revoked_at }
    const revokedAt = new Date(world.now()).toISOString()
    const revive = authorizations.kill(id)
    try {
      await writeAuthorization(tenants, { ...one, revoked_at: revokedAt })
    } catch (error) {
      revive()
      throw error
    }
    return { success: true, id, revoked_at: revokedAt }
  })
}
