import { lossesAccount, platformAccount } from '../../projections/ledger-entry.ts'
import type { Operation } from '../operation.ts'
import { readWalletBalance } from './read-wallet.ts'

export const getPlatformWallet: Operation<'getPlatformWallet', 'database' | 'tenants'> = async ({
  service,
}) => {
  const wallet = await readWalletBalance(service, platformAccount)
  const { ledger, schema } = service.tenants.system
  const { balance } = await ledger.readBalance(service.database, schema, lossesAccount)
  return { ...wallet, losses: String(-balance) }
}
