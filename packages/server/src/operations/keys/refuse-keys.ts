import { limits } from '@tollbase/contract/limits'
import { hasRight } from '@tollbase/contract/permissions'
import { Fault } from '../../base/fault.ts'
import type { KeyRecord } from '../../projections/keys.ts'
import type { Call } from '../../services/call.ts'

type KeyCall = Call<'world' | 'tenants'>

/** 409 where an application would have more live keys than it may. */
export function refuseTooManyKeys({ service }: KeyCall, appId: string): void {
  const { keys } = service.tenants.system
  const now = service.world.now()
  const live = keys.listByApp(appId).filter((one) => keys.isAlive(one, now))
  if (live.length < limits.keysPerApplicationMax) return
  throw new Fault('CONFLICT', {
    message: `An application has at most ${limits.keysPerApplicationMax} live keys; revoke one first`,
  })
}

/**
 * LAST_ADMIN_KEY where these live keys of an application are to end and no other one has Admin: a key may not lock
 * everybody out. The operator and the owner can make a new one, so they may.
 */
export function refuseLastAdmin({ caller, service }: KeyCall, ended: readonly KeyRecord[]): void {
  if (caller.kind === 'operator' || caller.kind === 'wallet') return
  const admin = ended.find(isAdmin)
  if (admin === undefined) return
  const { keys } = service.tenants.system
  const now = service.world.now()
  const hashes = new Set(ended.map(({ key_hash: hash }) => hash))
  const hasOther = keys
    .listByApp(admin.app_id)
    .some((one) => !hashes.has(one.key_hash) && isAdmin(one) && keys.isAlive(one, now))
  if (!hasOther) throw new Fault('LAST_ADMIN_KEY')
}

function isAdmin({ permissions }: KeyRecord): boolean {
  return hasRight(permissions, 'Admin')
}
