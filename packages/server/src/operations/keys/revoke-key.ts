import { hasRight } from '@tollbase/contract/permissions'
import { Fault } from '../../base/fault.ts'
import type { KeyRecord } from '../../projections/keys.ts'
import type { Call } from '../../services/call.ts'
import { requireKey, writeKeys } from '../../services/keys/key-record.ts'
import type { Operation } from '../operation.ts'

export const revokeKey: Operation<'revokeKey', 'world' | 'tenants'> = async (call, { params }) => {
  const { definitions, keys } = call.service.tenants.system
  return definitions.run(async () => {
    const key = requireKey(call.service.tenants, params.app, params.key_hash)
    if (key.revoked_at !== null)
      return { success: true, key_hash: key.key_hash, revoked_at: key.revoked_at }
    refuseLastAdmin(call, key)
    const revokedAt = new Date(call.service.world.now()).toISOString()
    const revive = keys.kill(key.key_hash)
    try {
      await writeKeys(call.service.tenants, [{ ...key, revoked_at: revokedAt }])
    } catch (error) {
      revive()
      throw error
    }
    return { success: true, key_hash: key.key_hash, revoked_at: revokedAt }
  })
}

/** A key may not lock everybody out; the operator and the owner can make a new one, so they may. */
function refuseLastAdmin(call: Call<'world' | 'tenants'>, key: KeyRecord): void {
  if (call.caller.kind === 'operator' || call.caller.kind === 'wallet') return
  const { keys } = call.service.tenants.system
  const now = call.service.world.now()
  if (!hasRight(key.permissions, 'Admin') || !keys.isAlive(key, now)) return
  const others = keys
    .listByApp(key.app_id)
    .filter(
      (one) =>
        one.key_hash !== key.key_hash &&
        hasRight(one.permissions, 'Admin') &&
        keys.isAlive(one, now),
    )
  if (others.length === 0) throw new Fault('LAST_ADMIN_KEY')
}
