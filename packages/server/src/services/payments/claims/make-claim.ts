import type { World } from '../../../base/world.ts'
import { isNative } from '../../../x402/protocol.ts'
import type { Paid, Purpose } from '../purchase.ts'
import type { Claim } from './claim-store.ts'
import { encodeTerms } from './claim-terms.ts'
import type { ClaimState } from './payment-states.ts'
import {
  encodeStoredPayment,
  findPaymentName,
  formatTransferName,
  getPayerBinding,
} from './stored-payment.ts'

/** Finds the name that a payment has in its claim. */
export function findIdentifier({ payment }: Pick<Paid, 'payment'>): string | null {
  return findPaymentName(payment)?.[1] ?? null
}

/** A claim whose request has not tried to write. */
const noWrite = { write_after: null, write_form: null } as const

/** Makes the claim of a payment as this try has it; one that an earlier try claimed (`found`) keeps its id. */
export function makeClaim(
  world: World,
  { paid, purpose }: { readonly paid: Paid; readonly purpose: Purpose },
  { found, to }: { readonly found: Claim | undefined; readonly to: ClaimState },
): Claim {
  const { payment } = paid
  const use = {
    request_hash: paid.requestHash,
    app: purpose.app,
    operation: purpose.operation,
    quote_id: paid.requirement.quoteId === '' ? null : paid.requirement.quoteId,
    terms: purpose.terms === undefined ? null : encodeTerms(purpose.terms),
    cap: purpose.terms?.cap ?? paid.requirement.amount,
    // A mere deposit asks for nothing that a name could ask for again.
    payment_identifier: purpose.terms === undefined ? null : findIdentifier(paid),
  }
  if (found !== undefined) {
    const isSame = found.request_hash === use.request_hash
    return { ...found, ...use, ...(!isSame && noWrite), state: to }
  }
  return {
    ...use,
    ...noWrite,
    id: `pay_${world.randomBytes(16).toString('hex')}`,
    identity: paid.identity,
    amount: payment.payload.value,
    transfer: isNative(payment)
      ? formatTransferName(payment.network, payment.payload.transaction, getPayerBinding(payment))
      : null,
    valid_before: isNative(payment) ? payment.payload.blockTime : payment.payload.validBefore,
    payment: encodeStoredPayment(payment),
    state: to,
    reason: null,
    settled_by: null,
    created_at_ms: BigInt(world.now()),
  }
}
