import type { Operation } from '../operation.ts'
import { walletView } from './wallet-view.ts'

export const getWallet: Operation<'getWallet'> = async ({ service }, { params }) =>
  walletView(service, `wallet:${params.address.toLowerCase()}`)
