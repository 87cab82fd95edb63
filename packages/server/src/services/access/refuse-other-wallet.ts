import { Fault } from '../../base/fault.ts'
import type { Caller } from './access.ts'

/** 403 for a wallet that is not this one, in lower case. */
export function refuseOtherWallet(caller: Caller, address: string): void {
  if (caller.kind === 'wallet' && caller.address !== address)
    throw new Fault('FORBIDDEN', { message: 'The movements of a wallet are for its own signature' })
}
