import type { Operation } from '../operation.ts'
import { readWalletBalance } from './read-wallet.ts'

export const getApplicationWallet: Operation<
  'getApplicationWallet',
  'database' | 'tenants'
> = async ({ service }, { params }) => readWalletBalance(service, `app:${params.app}`)
