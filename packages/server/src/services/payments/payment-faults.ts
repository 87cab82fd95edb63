import { Fault } from '../../base/fault.ts'
import { toDatabaseFault } from '../../database/errors.ts'
import type { Claim } from './claims/claim-store.ts'
import { depositOperation } from './purchase.ts'

/** The payment is known and bought something else, or was taken for a balance. */
export function makeUsedFault({ request_hash }: Claim): Fault {
  const isBalance = request_hash === depositOperation
  const message = 'This payment was taken for the balance of its payer; it buys nothing by itself.'
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

/**
 * Makes a fault of an error that came after money moved, with the payment's id, by which the caller finds the
 * money. An error that a retry can mend says so: the same request with the same payment continues where this one
 * stopped.
 */
export function toPaymentFault(
  error: unknown,
  payment: { payment_id?: string; charged?: string },
): Fault {
  const known = error instanceof Fault ? error : toDatabaseFault(error)
  if (known !== undefined) {
    const { code, message, internal, cause, retryAfterSeconds } = known
    return new Fault(code, {
      message,
      details: { ...known.details, ...payment },
      ...(internal !== undefined && { internal }),
      ...(cause !== undefined && { cause }),
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    })
  }
  const internal = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new Fault('INTERNAL', { details: payment, cause: error, internal })
}
