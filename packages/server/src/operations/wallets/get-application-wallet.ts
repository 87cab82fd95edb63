import type { Operation } from '../operation.ts'
import { walletView } from './read-wallet.ts'

export const getApplicationWallet: Operation<'getApplicationWallet'> = async (
  { service },
  { params },
) => walletView(service, `app:${params.app}`)
