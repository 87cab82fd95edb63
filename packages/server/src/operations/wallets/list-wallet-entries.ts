import { refuseOtherWallet } from '../../services/access/refuse-other-wallet.ts'
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
