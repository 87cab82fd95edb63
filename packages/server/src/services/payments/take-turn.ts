import { Fault } from '../../base/fault.ts'
import type { Singleflight } from '../../base/singleflight.ts'

/**
 * Tasks that wait for one payment. Whoever repeats a request shares its task, so a client has two or three; a stranger may
 * write one signature into any number of forms, each with a place among all payments while it waits.
 */
const waitingMaxDefault = 8

type Turn = { readonly identity: string; readonly task: string; readonly waitingMax?: number }

/** Works on a payment that somebody brings, in its turn. PAYMENT_PENDING where too many other tasks wait for theirs. */
export async function takeTurn<T>(
  turns: Singleflight,
  { identity, task, waitingMax = waitingMaxDefault }: Turn,
  work: () => Promise<T>,
): Promise<T> {
  if (turns.isFull(identity, task, waitingMax)) throw makeCrowdedFault()
  return turns.run(identity, task, work)
}

function makeCrowdedFault(): Fault {
  return new Fault('PAYMENT_PENDING', {
    message:
      'Other requests with this payment are under way; repeat the same request with the same payment.',
    retryAfterSeconds: 2,
    details: { status: 'pending' },
  })
}
