import type { Turn } from '../../base/semaphore.ts'
import { toAddressKey } from '../../http/rate-limits.ts'
import type { RequestContext } from '../../http/request-context.ts'
import type { RequestInfo } from '../../http/request-info.ts'
import type { Caller } from '../access/access.ts'
import type { Call } from '../call.ts'

/**
 * Makes the turn of a free query. A key's turn counts for its own application, whatever it reads, so that nobody
 * takes turns from others by reading their data; any other caller's counts for the application that is read. A
 * wallet costs nothing, so its caller counts by address.
 */
export function makeFreeTurn({ caller, requestInfo }: Call, read: string): Turn {
  return new FreeTurn(identifyTurn(caller, requestInfo, read), requestInfo.context)
}

/** A turn that makes its signal for those who ask for it: short reads never do, and it costs more than all else here. */
class FreeTurn implements Turn {
  readonly application: string
  readonly caller: string
  readonly rank: Turn['rank']
  readonly #context: RequestContext

  constructor({ application, caller, rank }: Turn, context: RequestContext) {
    this.application = application
    this.caller = caller
    this.rank = rank
    this.#context = context
  }

  get signal(): AbortSignal {
    return this.#context.getAbortSignal()
  }
}

function identifyTurn(caller: Caller, { remoteAddress }: RequestInfo, read: string): Turn {
  if (caller.kind === 'operator') return { application: 'system', caller: 'operator', rank: 'key' }
  if (caller.kind === 'key')
    return { application: caller.key.app_id, caller: caller.key.key_hash, rank: 'key' }
  return { application: read, caller: toAddressKey(remoteAddress), rank: 'visitor' }
}

/** Makes the turn of a paid query. It runs to its end, since a repeated request gets its answer. */
export function makePaidTurn(requestInfo: RequestInfo, read: string): Turn {
  return { application: read, caller: toAddressKey(requestInfo.remoteAddress), rank: 'paid' }
}
