import { accessLimits } from './limits/access.ts'
import { answerLimits } from './limits/answers.ts'
import { apiCollectionLimits } from './limits/api-collections.ts'
import { blobLimits } from './limits/blobs.ts'
import { chainLimits } from './limits/chain.ts'
import { changeLimits } from './limits/change-feed.ts'
import { channelLimits } from './limits/channels.ts'
import { collectionLimits } from './limits/collections.ts'
import { definitionLimits } from './limits/definitions.ts'
import { encryptionLimits } from './limits/encryption.ts'
import { facilitatorLimits } from './limits/facilitator.ts'
import { idempotencyLimits } from './limits/idempotency.ts'
import { listQueryLimits } from './limits/list-queries.ts'
import { paymentLimits } from './limits/payments.ts'
import { payoutLimits } from './limits/payouts.ts'
import { predefinedQueryLimits } from './limits/predefined-queries.ts'
import { priceLimits } from './limits/prices.ts'
import { recordLimits } from './limits/records.ts'
import { requestLimits } from './limits/requests.ts'
import { retentionLimits } from './limits/retention.ts'
import { runningQueryLimits } from './limits/running-queries.ts'
import { schemaLimits } from './limits/schemas.ts'
import { sqlLimits } from './limits/sql.ts'
import { taskLimits } from './limits/tasks.ts'
import { viewLimits } from './limits/views.ts'

/**
 * Every bound that a caller or operator can meet, in one object; its files in `limits/` are named by what they bound.
 * Each bound is tested at the limit and one past it. Rates are settings (`rate_limits`). A number that only decides how
 * a part works inside (how often it sweeps, how many it builds at once) stands at the top of that part.
 */
export const limits = {
  ...accessLimits,
  ...answerLimits,
  ...apiCollectionLimits,
  ...blobLimits,
  ...chainLimits,
  ...changeLimits,
  ...channelLimits,
  ...collectionLimits,
  ...definitionLimits,
  ...encryptionLimits,
  ...facilitatorLimits,
  ...idempotencyLimits,
  ...listQueryLimits,
  ...paymentLimits,
  ...payoutLimits,
  ...predefinedQueryLimits,
  ...priceLimits,
  ...recordLimits,
  ...requestLimits,
  ...retentionLimits,
  ...runningQueryLimits,
  ...schemaLimits,
  ...sqlLimits,
  ...taskLimits,
  ...viewLimits,
} as const
