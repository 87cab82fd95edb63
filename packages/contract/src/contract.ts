import { apiCollections } from './api-collections.ts'
import { applications } from './applications.ts'
import { authorizations } from './authorizations.ts'
import { batch } from './batch.ts'
import { billing } from './billing.ts'
import { blobs } from './blobs.ts'
import { chain } from './chain.ts'
import { collections } from './collections.ts'
import { dataSets } from './data-sets.ts'
import { encryption } from './encryption.ts'
import { grants } from './grants.ts'
import { health } from './health.ts'
import { indexes } from './indexes.ts'
import { keys } from './keys.ts'
import { query } from './listing.ts'
import { passes } from './passes.ts'
import { devnet, payments } from './payments.ts'
import { payout } from './payout.ts'
import { pricing } from './pricing.ts'
import { queries } from './queries.ts'
import { relations } from './relations.ts'
import { retention } from './retention.ts'
import { storage, tasks } from './storage.ts'
import { transactions } from './transactions.ts'
import { uploads } from './uploads.ts'
import { views } from './views.ts'
import { wallets } from './wallets.ts'

/** Version of the interface description (openapi.json `info.version`); the program has its own. */
export const interfaceVersion = '4.0.0'

/** Every endpoint of the service, by operationId. */
export const tollbase = {
  ...health,
  ...applications,
  ...keys,
  ...collections,
  ...apiCollections,
  ...storage,
  ...batch,
  ...blobs,
  ...uploads,
  ...query,
  ...queries,
  ...tasks,
  ...indexes,
  ...relations,
  ...views,
  ...grants,
  ...dataSets,
  ...encryption,
  ...retention,
  ...pricing,
  ...passes,
  ...payments,
  ...wallets,
  ...authorizations,
  ...payout,
  ...billing,
  ...transactions,
  ...chain,
  ...devnet,
}

export type Tollbase = typeof tollbase
export type OperationId = keyof Tollbase
