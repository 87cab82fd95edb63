import type { Operation } from '../operation.ts'
import { entriesView } from './wallet-view.ts'

export const listApplicationWalletEntries: Operation<'listApplicationWalletEntries'> = async (
  { service },
  { params, query },
) => entriesView(service, `app:${params.app}`, query)
