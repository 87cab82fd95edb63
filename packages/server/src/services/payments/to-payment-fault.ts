import { Fault } from '../../base/fault.ts'
import { toDatabaseFault } from '../../database/errors.ts'

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
