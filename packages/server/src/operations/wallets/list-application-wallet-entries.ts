import type { Operation } from '../operation.ts'
import { readWalletEntries } from './read-wallet.ts'

export const listApplicationWalletEntries: Operation<
  'listApplicationWalletEntries',
  'database' | 'tenancy'
> = async ({ service }, { params, query }) => readWalletEntries(service, `app:${params.app}`, query)
