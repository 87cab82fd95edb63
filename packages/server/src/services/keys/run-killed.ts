import { Fault } from '../../base/fault.ts'
import type { Tenants } from '../applications/tenants.ts'
import type { Call } from '../call.ts'

/**
 * Does work that ends keys when its turn comes among the changes of applications and keys. The keys were killed before
 * it, because many changes can wait for their turn, and `revive` undoes that: where the work fails the keys live, and
 * where it does not, their records say that they are dead.
 */
export async function runKilled<T>(
  { system }: Tenants,
  revive: () => void,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await system.definitions.run(work)
  } finally {
    revive()
  }
}

/**
 * 401 where the caller's key died while its request waited: otherwise a key that was revoked could still make others by
 * the requests that it sent before. `killed` are the keys that the request itself killed.
 */
export function refuseDeadCaller(
  { caller, service }: Call<'tenants' | 'world'>,
  killed?: { readonly has: (keyHash: string) => boolean },
): void {
  if (caller.kind !== 'key') return
  const { keys } = service.tenants.system
  const { app_id: appId, key_hash: keyHash } = caller.key
  const key = keys.get(appId, keyHash)
  const ownKills = killed?.has(keyHash) === true ? 1 : 0
  if (key !== undefined && keys.isAlive(key, service.world.now(), ownKills)) return
  throw new Fault('UNAUTHORIZED', { message: 'The key is not known, expired or revoked' })
}
