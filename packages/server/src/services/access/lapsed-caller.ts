import type { Permitted } from '@tollbase/contract/permissions'
import { Fault } from '../../base/fault.ts'
import type { Call } from '../call.ts'
import { requirePermission } from './access.ts'

/** The keys that a request itself killed, by hash. */
type Killed = { readonly has: (keyHash: string) => boolean }

/**
 * 401, 403 or 404 where the caller has lost its right while the request waited: otherwise a key that was revoked could
 * still make others, or another owner, by the requests that it sent before.
 */
export function refuseLapsedCaller(
  call: Call<'tenants'>,
  appId: string,
  right: {
    readonly permission: Permitted
    readonly evenArchived?: boolean
    readonly killed?: Killed
  },
): void {
  refuseDeadCaller(call, right.killed)
  const { permission, evenArchived = false } = right
  const { tenants } = call.service
  requirePermission(call.caller, permission, { appId, tenants, evenArchived })
}

/** 401 where the caller's key died while its request waited. */
export function refuseDeadCaller({ caller, service }: Call<'tenants'>, killed?: Killed): void {
  if (caller.kind !== 'key') return
  const { keys } = service.tenants.system
  const { app_id: appId, key_hash: keyHash } = caller.key
  const key = keys.get(appId, keyHash)
  const ownKills = killed?.has(keyHash) === true ? 1 : 0
  if (key !== undefined && keys.isAlive(key, service.tenants.now(), ownKills)) return
  throw new Fault('UNAUTHORIZED', { message: 'The key was revoked or has expired meanwhile' })
}
