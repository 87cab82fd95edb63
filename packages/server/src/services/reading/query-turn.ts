import type { Turn } from '../../base/semaphore.ts'
import { toAddressKey } from '../../http/rate-limits.ts'
import type { RequestInfo } from '../../http/request-info.ts'
import type { Call } from '../call.ts'

/**
 * Makes the turn of a free query. A key's turn counts for its own application, whatever it reads, so that nobody
 * takes turns from others by reading their data; any other caller's counts for the application that is read. A
 * wallet costs nothing, so its caller counts by address.
 */
export function makeFreeTurn({ caller, requestInfo }: Call, read: string): Turn {
  const getSignal = () => requestInfo.context.getAbortSignal()
  if (caller.kind === 'operator')
    return { application: 'system', caller: 'operator', rank: 'key', getSignal }
  if (caller.kind === 'key') {
    const { app_id: application, key_hash: hash } = caller.key
    return { application, caller: hash, rank: 'key', getSignal }
  }
  const address = toAddressKey(requestInfo.remoteAddress)
  return { application: read, caller: address, rank: 'visitor', getSignal }
}

/** Makes the turn of a paid query. It runs to its end, since a repeated request gets its answer. */
export function makePaidTurn(requestInfo: RequestInfo, read: string): Turn {
  return { application: read, caller: toAddressKey(requestInfo.remoteAddress), rank: 'paid' }
}
