import { Fault } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { entriesView } from './wallet-view.ts'

export const listWalletEntries: Operation<'listWalletEntries'> = async (
  { service, caller },
  { params, query },
) => {
  const address = params.address.toLowerCase()
  if (caller.kind === 'wallet' && caller.address !== address) {
    throw new Fault('FORBIDDEN', { message: 'The movements of a wallet are for its own signature' })
  }
  return entriesView(service, `wallet:${address}`, query)
}
