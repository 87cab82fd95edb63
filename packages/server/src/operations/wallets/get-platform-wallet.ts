import { platformAccount } from '../../services/payments/ledger-entries.ts'
import type { Operation } from '../operation.ts'
import { readWalletBalance } from './read-wallet.ts'

export const getPlatformWallet: Operation<'getPlatformWallet', 'database' | 'tenants'> = async ({
  service,
}) => readWalletBalance(service, platformAccount)
