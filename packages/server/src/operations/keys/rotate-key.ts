import { Fault } from '../../base/fault.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { makeKey, requireKey, writeKeys } from '../../services/keys/key-record.ts'
import { runKilled } from '../../services/keys/run-killed.ts'
import type { Operation } from '../operation.ts'
import { refuseTooManyKeys } from './refuse-keys.ts'

export const rotateKey: Operation<'rotateKey', 'database' | 'world' | 'tenants'> = async (
  call,
  { params, body },
) => {
  const { tenants, world } = call.service
  const { keys } = tenants.system
  const overlapMs = (body.overlap_seconds ?? 0) * 1000
  const ownKills = overlapMs === 0 ? 1 : 0
  const asked = await requireKey(call.service, params.app, params.key_hash)
  // Judged and killed in one step, so that a dead key kills none.
  refuseLapsedCaller(call, params.app, { permission: 'Admin' })
  const now = world.now()
  if (!keys.isAlive(asked, now)) throw makeDeadFault()
  const revive = ownKills === 0 ? () => undefined : keys.kill(asked.key_hash)
  return runKilled(tenants, revive, async () => {
    const killed = new Set(ownKills === 0 ? [] : [asked.key_hash])
    refuseLapsedCaller(call, params.app, { permission: 'Admin', killed })
    const old = keys.get(params.app, params.key_hash)
    if (old === undefined || !keys.isAlive(old, now, ownKills)) throw makeDeadFault()
    if (overlapMs > 0) refuseTooManyKeys(call, params.app)
    const until = now + overlapMs
    const validUntil = new Date(
      Math.min(until, old.expires_at === null ? until : Date.parse(old.expires_at)),
    ).toISOString()
    const { text, record } = makeKey(world, {
      appId: old.app_id,
      name: old.name,
      permissions: old.permissions,
      payLimits: old.pay_limits,
      expiresAt: old.expires_at,
      successorOf: old,
    })
    await writeKeys(tenants, [{ ...old, expires_at: validUntil }, record])
    return {
      key: text,
      key_hash: record.key_hash,
      old_key_hash: old.key_hash,
      old_valid_until: validUntil,
    }
  })
}

function makeDeadFault(): Fault {
  return new Fault('CONFLICT', { message: 'A revoked or expired key cannot be rotated' })
}
