import type { Operation } from '../operation.ts'
import { entriesView } from './read-wallet.ts'

export const listApplicationWalletEntries: Operation<'listApplicationWalletEntries'> = async (
  { service },
  { params, query },
) => entriesView(service, `app:${params.app}`, query)
