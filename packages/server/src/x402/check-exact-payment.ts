import { limits } from '@tollbase/contract/limits'
import type { Refusal, Verification } from './facilitator.ts'
import { decodeHex } from './hex.ts'
import type { Requirement, SignedPayment } from './protocol.ts'
import { digestTransfer, recoverSigner } from './signature.ts'
import { isTooLate } from './validity.ts'

/** True of a refusal for its end alone: what such an authorization moved, by whomever it was used, is here all the same. */
export function isForItsEnd({ reason }: Refusal): boolean {
  return reason === 'expired' || reason === 'valid_too_long'
}

/** Returns true where the payer signed exactly this transfer of the network's asset. */
export function isSigned({ payload }: SignedPayment, { network }: Requirement): boolean {
  return (
    recoverSigner(digestTransfer(network, payload), decodeHex(payload.signature)) === payload.from
  )
}

/** Returns true where nothing is wrong that can be told without asking anyone but the clock. */
export function isSound(
  payment: SignedPayment,
  requirement: Requirement,
  nowSeconds: bigint,
): boolean {
  return checkTerms(payment, requirement, nowSeconds).ok && isSigned(payment, requirement)
}

/**
 * Everything that can be checked without asking anyone but the clock, in the order cheap to dear; that it has expired,
 * or would be valid for too long, is said only of what is right in all else.
 */
export function checkTerms(
  payment: SignedPayment,
  requirement: Requirement,
  nowSeconds: bigint,
): Verification {
  const { payload, accepted } = payment
  const { network, amount } = requirement
  const terms: readonly (readonly [field: string, given: unknown, expected: unknown])[] = [
    ['network', payment.network, network.id],
    ['accepted.amount', accepted?.amount ?? amount, amount],
    ['accepted.asset', accepted?.asset ?? network.asset.address, network.asset.address],
    ['accepted.payTo', accepted?.payTo ?? network.payTo, network.payTo],
    ['payload.authorization.to', payload.to, network.payTo],
    ['payload.authorization.value', payload.value, amount],
  ]
  for (const [field, given, expected] of terms) {
    if (given !== expected) {
      return { ok: false, reason: 'mismatch', field, detail: `must be ${expected}` }
    }
  }
  if (payload.from === network.payTo) {
    // The payment would be booked as a deposit, though nothing came in.
    const detail = 'must not be the payee'
    return { ok: false, reason: 'mismatch', field: 'payload.authorization.from', detail }
  }
  if (payload.validAfter > nowSeconds) {
    return { ok: false, reason: 'not_yet_valid', field: 'payload.authorization.validAfter' }
  }
  if (isTooLate(payload, nowSeconds)) {
    return { ok: false, reason: 'expired', field: 'payload.authorization.validBefore' }
  }
  const latest = nowSeconds + BigInt(limits.authorizationSecondsMax)
  if (payload.validBefore > latest) {
    const detail = `must be at most ${limits.authorizationSecondsMax} seconds from now, ${latest}`
    const field = 'payload.authorization.validBefore'
    return { ok: false, reason: 'valid_too_long', field, detail }
  }
  return { ok: true }
}
