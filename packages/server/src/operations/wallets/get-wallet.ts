import type { Operation } from '../operation.ts'
import { readWalletBalance } from './read-wallet.ts'

export const getWallet: Operation<'getWallet', 'database' | 'tenants'> = async (
  { service },
  { params },
) => readWalletBalance(service, `wallet:${params.address.toLowerCase()}`)
