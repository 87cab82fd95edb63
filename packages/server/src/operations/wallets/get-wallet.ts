import type { Operation } from '../operation.ts'
import { walletView } from './read-wallet.ts'

export const getWallet: Operation<'getWallet'> = async ({ service }, { params }) =>
  walletView(service, `wallet:${params.address.toLowerCase()}`)
