import type { Operation } from '../operation.ts'
import { readWalletEntries } from './read-wallet.ts'

export const listApplicationWalletEntries: Operation<
  'listApplicationWalletEntries',
  'database' | 'tenants'
> = async ({ service }, { params, query }) => readWalletEntries(service, `app:${params.app}`, query)
