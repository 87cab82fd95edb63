import type { Requirement, SignedPayment } from './protocol.ts'

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
      /** True where a block has a transaction of ours that did not make it. */
      readonly wasInVain?: true
      /** True where a transaction of ours, which cannot make it any more, may still get into a block. */
      readonly isOnItsWay?: true
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
      /**
       * The transaction that used it, by whomever, where its events are more than are ever read: for as long as its block
       * is there, no later look finds more.
       */
      readonly usedIn?: string
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
   * Waits until `settle` would send a payment at once, as far as its payer's others go; false where that takes too long.
   * Not there where nobody waits for others. Each one that is not handed to `settle` then must be handed to `lookup`, or it
   * holds up its payer's others for some minutes.
   */
  readonly awaitTurn?: (payment: SignedPayment, requirement: Requirement) => Promise<boolean>
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
