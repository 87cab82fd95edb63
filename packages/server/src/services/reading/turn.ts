import type { Turn } from '../../base/semaphore.ts'
import { addressKey } from '../../http/rate-limits.ts'
import type { Call } from '../call.ts'

/**
 * The turn of a free query. A key's counts to its own application, whatever it reads, so that nobody takes from others
 * by reading what is theirs; that of anybody else to the application that is read. A wallet costs nothing, so behind
 * one stands an address like any other.
 */
export function freeTurn({ caller, facts }: Call, read: string): Turn {
  const signal = facts.pass.gone()
  if (caller.kind === 'operator')
    return { application: 'system', caller: 'operator', rank: 'key', signal }
  if (caller.kind === 'key') {
    const { app_id: application, key_hash: hash } = caller.key
    return { application, caller: hash, rank: 'key', signal }
  }
  const address = addressKey(facts.remoteAddress)
  return { application: read, caller: address, rank: 'visitor', signal }
}

/** The turn of a query that is paid for. It runs to its end: whoever repeats the request gets its answer. */
export function paidTurn({ facts }: Call, read: string): Turn {
  return { application: read, caller: addressKey(facts.remoteAddress), rank: 'paid' }
}
