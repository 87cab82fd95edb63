import { hasRight, listDefaults, type Permission } from '@tollbase/contract/permissions'
import { Fault } from '../../base/fault.ts'
import type { KeyRecord } from '../../projections/keys.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { describeKey, makeKey, parseKeyEnd, writeKeys } from '../../services/keys/key-record.ts'
import { runKilled } from '../../services/keys/run-killed.ts'
import type { Operation } from '../operation.ts'
import { toStoredPayLimits } from './pay-limits.ts'
import { refuseLastAdmin, refuseTooManyKeys } from './refuse-keys.ts'

export const regenerateKey: Operation<'regenerateKey', 'world' | 'tenants'> = async (
  call,
  { params, body },
) => {
  const { tenants, world } = call.service
  const { keys } = tenants.system
  const name = body.name ?? 'default'
  const end = body.expires_at === undefined ? undefined : parseKeyEnd(body.expires_at, world.now())
  const kills = new Map<string, () => void>()
  /** Judges and kills, in one step, the live keys of the name; another request may have made some meanwhile. */
  const killNamed = () => {
    const now = world.now()
    const named = listNamed(keys.listByApp(params.app), name)
    const old = named.filter((one) => keys.isAlive(one, now, kills.has(one.key_hash) ? 1 : 0))
    const last = old.at(-1) ?? named.at(-1)
    const permissions = body.permissions ?? last?.permissions ?? choosePermissions(params.app)
    if (!hasRight(permissions, 'Admin')) refuseLastAdmin(call, old)
    if (old.length === 0) refuseTooManyKeys(call, params.app)
    for (const { key_hash: hash } of old) if (!kills.has(hash)) kills.set(hash, keys.kill(hash))
    return { old, last, permissions }
  }
  const choosePermissions = (appId: string): readonly Permission[] => {
    if (!keys.hasForgotten(appId)) return listDefaults('isInFirstKey')
    throw new Fault('CONFLICT', {
      message: `No key ${name} is among those that the service lists, and one of long ago may have had the name: say which \`permissions\` it shall have`,
    })
  }
  const reviveAll = () => {
    for (const revive of kills.values()) revive()
  }
  refuseLapsedCaller(call, params.app, { permission: 'Admin' })
  killNamed()
  return runKilled(tenants, reviveAll, async () => {
    refuseLapsedCaller(call, params.app, { permission: 'Admin', killed: kills })
    const { old, last, permissions } = killNamed()
    const replaced = old.at(-1)
    // A key that was revoked, or has run out, is followed by one that may do no more than it, and spends on its budget.
    const { text, record } = makeKey(world, {
      appId: params.app,
      name,
      permissions,
      payLimits:
        body.pay_limits === undefined
          ? (last?.pay_limits ?? null)
          : toStoredPayLimits(body.pay_limits),
      expiresAt: end === undefined ? (replaced?.expires_at ?? null) : end,
      successorOf: last,
    })
    const revokedAt = new Date(world.now()).toISOString()
    await writeKeys(tenants, [...old.map((one) => ({ ...one, revoked_at: revokedAt })), record])
    return { key: text, ...describeKey(record), replaced_key_hash: replaced?.key_hash ?? null }
  })
}

/** Lists the keys of a name, oldest first. */
function listNamed(all: readonly KeyRecord[], name: string): KeyRecord[] {
  return all
    .filter((one) => one.name === name)
    .sort((one, other) => Date.parse(one.created_at) - Date.parse(other.created_at))
}
