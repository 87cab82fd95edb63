import { limits } from '@tollbase/contract/limits'
import type { World } from '../base/world.ts'
import { decodeHex } from './hex.ts'
import type { ExactPayment, Requirement, SignedPayment } from './protocol.ts'
import { digestTransfer, recoverSigner } from './signature.ts'

export type Verification = { readonly ok: true } | Refusal

export type Refusal = {
  readonly ok: false
  readonly reason: RefusalReason
  /** The field of the payment that does not match. */
  readonly field?: string
  /** The expectation, or the token's answer, for the payer. */
  readonly detail?: string
}

export type RefusalReason =
  | 'mismatch'
  | 'not_yet_valid'
  | 'expired'
  | 'valid_too_long'
  | 'invalid_signature'
  | 'insufficient_balance'
  /**
   * The authorization was used or canceled. If it was claimed before, it may be this very payment, handed in by a
   * third party: ask `lookup`. If not, its money may have come without a purchase: ask `findUse`.
   */
  | 'authorization_used'
  | 'simulation_failed'
  /** Others of its payer failed on our gas. */
  | 'failed_before'
  | 'refused_by_facilitator'

export type Settlement =
  | {
      readonly state: 'settled'
      readonly transaction: string
      readonly blockNumber?: bigint
      readonly gas?: bigint
    }
  | {
      readonly state: 'failed'
      readonly reason: string
      /** The cost of our transaction, in the smallest unit of the chain's own coin. */
      readonly gas?: bigint
      /** True if this authorization can never move money to us any more. */
      readonly final: boolean
    }
  /** Money may have moved or may still move: neither deliver nor ask for another payment. */
  | {
      readonly state: 'pending'
      readonly transaction?: string
      readonly reason: string
      /** True if nothing was sent, and nothing will be before it is handed to `settle` again. */
      readonly isUnsent?: true
    }

/**
 * Checks and executes payments. Network trouble is never an answer about a payment: verify throws
 * PAYMENT_NETWORK_UNREACHABLE, settle and lookup return pending.
 */
export type Facilitator = {
  /** The address of our key that pays the gas; not there where somebody else settles. */
  readonly address?: string
  readonly verify: (payment: SignedPayment, requirement: Requirement) => Promise<Verification>
  /**
   * Asks the chain whether the authorization was used or canceled; false where there is no node that could tell.
   * Throws PAYMENT_NETWORK_UNREACHABLE.
   */
  readonly isUsed: (payment: SignedPayment, requirement: Requirement) => Promise<boolean>
  /**
   * Reads from the chain the outcome of an authorization that was used and never handed to `settle`; sends nothing.
   */
  readonly findUse: (payment: SignedPayment, requirement: Requirement) => Promise<Settlement>
  /**
   * Reads what the payer has on the chain, in atomic units; not there where no node could tell. Throws
   * PAYMENT_NETWORK_UNREACHABLE.
   */
  readonly readFunds?: (payment: SignedPayment, requirement: Requirement) => Promise<bigint>
  /**
   * Settles a payment, idempotent by id: the same id is the same transaction, however often and after whatever
   * crash.
   */
  readonly settle: (
    id: string,
    payment: SignedPayment,
    requirement: Requirement,
  ) => Promise<Settlement>
  /** Reads the outcome of a payment that was handed to `settle` under this id, or never was; sends nothing new. */
  readonly lookup: (
    id: string,
    payment: SignedPayment,
    requirement: Requirement,
  ) => Promise<Settlement>
}

/** A payment and the requirement that it is for. */
export type PaymentDue = { readonly payment: SignedPayment; readonly requirement: Requirement }

/** The margin before validBefore by which a settlement must be sent for a block to take it. */
const settleMarginSeconds = 6n

/** The margin by which a block's time may lie behind the wall clock. */
const clockMarginSeconds = 60n

export function getNowSeconds(world: World): bigint {
  return BigInt(Math.floor(world.now() / 1000))
}

/** Returns true where a payment is not sent any more: no block would take it in time, and it would only cost gas. */
export function isTooLate(
  { validBefore }: Pick<ExactPayment, 'validBefore'>,
  nowSeconds: bigint,
): boolean {
  return validBefore < nowSeconds + settleMarginSeconds
}

/** Returns true once the authorization is over by our clock. */
export function isExpired(world: World, payment: Pick<ExactPayment, 'validBefore'>): boolean {
  return isOverBy(getNowSeconds(world), payment)
}

/** Returns true once the authorization is over by this time, also for a block whose time lies a little behind. */
export function isOverBy(
  seconds: bigint,
  { validBefore }: Pick<ExactPayment, 'validBefore'>,
): boolean {
  return seconds > validBefore + clockMarginSeconds
}

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
