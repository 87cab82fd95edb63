import { Fault } from '../../base/fault.ts'
import { makeKey, requireKey, writeKeys } from '../../services/keys/key-record.ts'
import type { Operation } from '../operation.ts'

export const rotateKey: Operation<'rotateKey', 'world' | 'tenants'> = async (
  { service },
  { params, body },
) => {
  const { definitions, keys } = service.tenants.system
  return definitions.run(async () => {
    const old = requireKey(service.tenants, params.app, params.key_hash)
    const now = service.world.now()
    if (!keys.isAlive(old, now))
      throw new Fault('CONFLICT', { message: 'A revoked or expired key cannot be rotated' })
    const until = now + (body.overlap_seconds ?? 0) * 1000
    const validUntil = new Date(
      Math.min(until, old.expires_at === null ? until : Date.parse(old.expires_at)),
    ).toISOString()
    const { text, record } = makeKey(service.world, {
      appId: old.app_id,
      name: old.name,
      permissions: old.permissions,
      payLimits: old.pay_limits,
      expiresAt: old.expires_at,
      successorOf: old,
    })
    await writeKeys(service.tenants, [{ ...old, expires_at: validUntil }, record])
    return {
      key: text,
      key_hash: record.key_hash,
      old_key_hash: old.key_hash,
      old_valid_until: validUntil,
    }
  })
}
