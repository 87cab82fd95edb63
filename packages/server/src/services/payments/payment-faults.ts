import { Fault } from '../../base/fault.ts'
import type { Claim } from './claims/claim-store.ts'
import { depositOperation } from './purchase.ts'

/** The payment is known and bought something else, or is on a balance. */
export function makeUsedFault({ request_hash, settled_by }: Claim): Fault {
  const isBalance = request_hash === depositOperation && settled_by !== null
  const message = 'This payment is on the balance of its payer; it buys nothing by itself.'
  return new Fault('PAYMENT_ALREADY_USED', { ...(isBalance && { message }) })
}

/** The money of a deposit was held, and the operator has put it on its account. */
export function makeReleasedFault(account: string): Fault {
  return new Fault('PAYMENT_ALREADY_USED', {
    message: `The money of this deposit was held after a restore and has been released: it is on the balance of ${account}.`,
  })
}

/** The payment is claimed, and nobody knows yet whether it was made. */
export function makePendingFault(paymentId: string, internal: string): Fault {
  return new Fault('PAYMENT_PENDING', {
    retryAfterSeconds: 2,
    internal,
    details: { payment_id: paymentId, status: 'pending' },
  })
}

/** The payer has other payments under way, and not the money for this one beside them. Nothing is claimed. */
export function makeOthersUnderWayFault(): Fault {
  return new Fault('PAYMENT_PENDING', {
    message:
      'Other payments of this wallet are under way, and it has not the money for this one as well. Nothing was taken; repeat the same request with the same payment.',
    retryAfterSeconds: 2,
    details: { status: 'pending' },
  })
}

/** The account has less than is asked of it, in atomic units. */
export function makeTooLowFault(available: bigint, asked: bigint): Fault {
  const left = available > 0n ? available : 0n
  return new Fault('BALANCE_TOO_LOW', {
    details: { available: String(left), asked: String(asked) },
  })
}

/** The transfer is not confirmed yet. Nothing is claimed, so it has no id. */
export function makeUnconfirmedFault(transaction: string | undefined): Fault {
  return new Fault('PAYMENT_PENDING', {
    retryAfterSeconds: 2,
    details: { status: 'pending', ...(transaction !== undefined && { transaction }) },
  })
}

/** The sentence of a 402 for a payment that its settler does not take. */
export function formatRefusal(verdict: {
  reason: string
  field?: string
  detail?: string
}): string {
  const where = [verdict.field, verdict.detail].filter((part) => part !== undefined).join(' ')
  return `The payment was refused: ${verdict.reason}${where === '' ? '' : ` (${where})`}`
}
