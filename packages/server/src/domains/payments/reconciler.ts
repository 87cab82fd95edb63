import type { Logger } from 'pino'
import { openClaims } from './claim-store.ts'
import type { Payments } from './payments.ts'

const intervalMs = 5_000
/** A claim this young is most likely in the hands of its request. */
const ageMs = 10_000
const batch = 100

/** Settles, at start and while running, what requests left open: crashed, timed out, or given up by the client. */
export function startReconciler(payments: Payments, log: Logger): () => void {
  const { database, world } = payments.ports
  let running = false
  const round = async (olderThanMs: number) => {
    if (running) return
    running = true
    try {
      for (const claim of await openClaims(database, { olderThanMs, limit: batch })) {
        await payments.reconcile(claim)
      }
    } catch (error) {
      log.warn({ error: String(error) }, 'payments could not be reconciled; trying again')
    } finally {
      running = false
    }
  }
  void round(world.now())
  return world.every(intervalMs, () => void round(world.now() - ageMs))
}
