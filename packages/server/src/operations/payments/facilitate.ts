import { Fault } from '../../base/fault.ts'
import { toAddressKey } from '../../http/rate-limits.ts'
import type { RequestInfo } from '../../http/request-info.ts'
import type { Caller } from '../../services/access/access.ts'
import type { Facilitating } from '../../services/payments/facilitating/facilitating.ts'
import type {
  ForeignRefusal,
  SentRequirements,
} from '../../services/payments/facilitating/foreign-requirement.ts'
import type { Settlement } from '../../x402/facilitator.ts'
import type { SignedPayment } from '../../x402/protocol.ts'

/** Returns the part that serves other servers, where these requirements are of one of them; 401 without a key. */
export function findFacilitating(
  facilitating: Facilitating | undefined,
  caller: Caller,
  requirements: SentRequirements,
): Facilitating | undefined {
  if (facilitating?.isForeign(requirements) !== true) return undefined
  const isKnown = caller.kind === 'key' || caller.kind === 'operator'
  if (facilitating.settings.access === 'key' && !isKnown)
    throw new Fault('UNAUTHORIZED', {
      message: 'Payments to others are settled for callers with a key of an application',
    })
  return facilitating
}

/** Identifies the caller whose allowance a settlement is of: an application's, the operator's, or an address's. */
export function identifyCaller(
  caller: Caller,
  { remoteAddress }: Pick<RequestInfo, 'remoteAddress'>,
): string {
  if (caller.kind === 'key') return `app:${caller.key.app_id}`
  return caller.kind === 'operator' ? caller.kind : toAddressKey(remoteAddress)
}

/** Formats a settlement as facilitators of x402 do. Its network is named as the requirements name it. */
export function formatSettlement(
  outcome: Settlement | ForeignRefusal,
  { payment, requirements }: { payment: SignedPayment; requirements: SentRequirements },
) {
  const about = { network: String(requirements.network), payer: payment.payload.from }
  if ('refusal' in outcome) {
    const { refusal: errorReason, detail: errorMessage } = outcome
    return {
      ...{ success: false, transaction: '', errorReason },
      ...(errorMessage !== undefined && { errorMessage }),
      ...about,
    }
  }
  if (outcome.state === 'settled')
    return { success: true, transaction: outcome.transaction, ...about }
  const { reason } = outcome
  if (outcome.state === 'failed')
    return { success: false, transaction: '', errorReason: reason, ...about }
  const { transaction = '' } = outcome
  // The word by which stock servers know that they may ask again.
  return { success: false, transaction, errorReason: 'settlement_pending', ...about }
}
