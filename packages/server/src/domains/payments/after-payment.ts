import { Fault } from '../../base/fault.ts'
import { isTransient } from '../../database/errors.ts'

/**
 * An error after money has moved, with the payment's id, under which the caller finds where the money is. What
 * trying again can mend says so: the same request with the same payment goes on where this one stopped.
 */
export function afterPayment(
  error: unknown,
  payment: { payment_id: string; charged?: string },
): Fault {
  if (error instanceof Fault) {
    const { code, message, internal, cause, retryAfterSeconds } = error
    return new Fault(code, {
      message,
      details: { ...error.details, ...payment },
      ...(internal !== undefined && { internal }),
      ...(cause !== undefined && { cause }),
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    })
  }
  const internal = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const options = { details: payment, cause: error, internal }
  if (isTransient(error)) return new Fault('UNAVAILABLE', { ...options, retryAfterSeconds: 1 })
  return new Fault('INTERNAL', options)
}
