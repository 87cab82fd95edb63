import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { requireKey, writeKeys } from '../../services/keys/key-record.ts'
import { runKilled } from '../../services/keys/run-killed.ts'
import type { Operation } from '../operation.ts'
import { refuseLastAdmin } from './refuse-keys.ts'

export const revokeKey: Operation<'revokeKey', 'database' | 'world' | 'tenants'> = async (
  call,
  { params },
) => {
  const { caller, service } = call
  const { tenants, world } = service
  const { keys } = tenants.system
  const asked = await requireKey(service, params.app, params.key_hash)
  if (asked.revoked_at !== null) return describeRevoked(asked.key_hash, asked.revoked_at)
  const judgeCaller = () => {
    // A key may always end itself, however often it asks for it.
    if (caller.kind === 'key' && caller.key.key_hash === asked.key_hash) return
    // One whose application is archived meanwhile stays revoked.
    refuseLapsedCaller(call, params.app, { permission: 'Admin', evenArchived: true })
  }
  // Judged and killed in one step, so that no two last keys end each other, and none ends the one that has ended it.
  judgeCaller()
  if (keys.isAlive(asked, world.now())) refuseLastAdmin(call, [asked])
  return runKilled(tenants, keys.kill(asked.key_hash), async () => {
    const key = await requireKey(service, params.app, params.key_hash)
    judgeCaller()
    const revokedAt = key.revoked_at ?? new Date(world.now()).toISOString()
    if (key.revoked_at === null) await writeKeys(tenants, [{ ...key, revoked_at: revokedAt }])
    return describeRevoked(key.key_hash, revokedAt)
  })
}

function describeRevoked(keyHash: string, revokedAt: string) {
  return { success: true, key_hash: keyHash, revoked_at: revokedAt }
}
