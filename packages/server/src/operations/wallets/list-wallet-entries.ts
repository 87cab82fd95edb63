import { Fault } from '../../base/fault.ts'
import type { Call } from '../../services/call.ts'
import type { Operation } from '../operation.ts'
import { readWalletEntries } from './read-wallet.ts'

export const listWalletEntries: Operation<'listWalletEntries', 'database' | 'tenants'> = async (
  { service, caller },
  { params, query },
) => {
  const address = params.address.toLowerCase()
  refuseOtherWallet(caller, address)
  return readWalletEntries(service, `wallet:${address}`, query)
}

/** 403 for a wallet that is not this one, in lower case. */
export function refuseOtherWallet(caller: Call['caller'], address: string): void {
  if (caller.kind === 'wallet' && caller.address !== address)
    throw new Fault('FORBIDDEN', { message: 'The movements of a wallet are for its own signature' })
}
