import type { World } from '../base/world.ts'
import type { Tenants } from '../services/applications/tenants.ts'

const lookMs = 1_000

/**
 * Reports when the service's own chain stops: without it nothing can be sold or defined, and a restart reads what
 * is committed. The returned function ends the watch.
 */
export function watchSystemChain(
  tenants: Tenants,
  world: World,
  onFatal: (reason: string) => void,
): () => Promise<void> {
  const stop = world.every(lookMs, () => {
    const { failure } = tenants.system.chain
    if (failure !== undefined) onFatal(`the service's own chain stopped: ${failure.message}`)
  })
  return async () => stop()
}
