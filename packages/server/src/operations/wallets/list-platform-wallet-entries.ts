import { platformAccount } from '../../projections/ledger-entry.ts'
import type { Operation } from '../operation.ts'
import { readWalletEntries } from './read-wallet.ts'

export const listPlatformWalletEntries: Operation<
  'listPlatformWalletEntries',
  'database' | 'tenants'
> = async ({ service }, { query }) => readWalletEntries(service, platformAccount, query)
