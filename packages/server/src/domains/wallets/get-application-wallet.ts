import type { Operation } from '../operation.ts'
import { walletView } from './wallet-view.ts'

export const getApplicationWallet: Operation<'getApplicationWallet'> = async (
  { service },
  { params },
) => walletView(service, `app:${params.app}`)
