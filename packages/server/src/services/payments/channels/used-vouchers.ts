import { requirePresent } from '../../../base/assert.ts'
import { Fault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import type { ChannelRow } from '../../../projections/channel-tables.ts'
import { findLastClaimBetween } from '../claims/claim-finder.ts'
import { type Claim, findClaim } from '../claims/claim-store.ts'
import type { Claims } from '../claims/claims.ts'
import { isUntried } from '../claims/payment-states.ts'
import { decodeStoredPayment, isFromSenderOf, isRepetition } from '../claims/stored-payment.ts'
import type { Deliverer } from '../deliverer.ts'
import type { FundedClaim } from '../purchase.ts'
import type { BoughtReply } from '../replies/bought-reply.ts'
import type { ChannelLook } from './channel-register.ts'
import {
  type BroughtVoucher,
  type ChannelUse,
  computeBase,
  findIdentityBounds,
  findRepeatedUse,
  isUnderSameQuote,
  makeVoucherPayment,
  readVoucher,
} from './voucher-payment.ts'

/** The reply that a voucher has bought, and the channel's total before it. */
type UsedVoucher = { readonly base: bigint; readonly bought: BoughtReply }

/** Uses at the total of now that a request is looked for among: who has a pass makes each of its requests at one total. */
const freeUsesMax = 100

/** Finds what was made of a voucher before: by this request, by others of its sender, or by somebody else. */
export class UsedVouchers {
  readonly #database: Queryable
  readonly #claims: Claims
  readonly #deliverer: Deliverer

  constructor(parts: {
    readonly database: Queryable
    readonly claims: Claims
    readonly deliverer: Deliverer
  }) {
    this.#database = parts.database
    this.#claims = parts.claims
    this.#deliverer = parts.deliverer
  }

  /**
   * Finds the reply that this very request bought with this very voucher. A client that has forgotten what was charged
   * signs an old voucher again, by another 402: it wants an answer of now. So that is given again only where it was the
   * last one, which the client may have lost, and is still kept.
   */
  async findRepeated(
    channel: ChannelRow,
    brought: BroughtVoucher,
  ): Promise<UsedVoucher | undefined> {
    const last = findRepeatedUse(channel, brought.payment)
    const claim = await this.#findUsed(channel, brought, last)
    if (claim === undefined) return undefined
    const stored = decodeStoredPayment(claim.payment)
    const { use } = requirePresent(readVoucher(stored), 'the voucher of a channel’s claim')
    const { payment } = makeVoucherPayment(brought.payment, use, brought)
    const isSent = isUnderSameQuote(stored, payment)
    if (!isSent && last === undefined) return undefined
    if (!isRepetition(claim.payment, { payment, isPayer: false })) return undefined
    const funded = this.#claims.findFunded(claim)
    // At the total of now stand those that were charged nothing, for which the client is not told 410.
    const isFree = use.base === channel.charged
    const bought = funded && (await this.#findBought(funded, isSent && !isFree))
    if (bought === undefined) return undefined
    // A voucher that was charged nothing is as good as new, unless what is sent again used up a part of a quota.
    if (bought.charge === 0n && !(isSent && bought.usesQuota === true)) return undefined
    return { base: use.base, bought }
  }

  /**
   * Finds the claim of a voucher's use: the channel's last one, or one that others have followed. At the total of now there
   * may be uses that were charged nothing.
   */
  async #findUsed(
    channel: ChannelRow,
    brought: BroughtVoucher,
    last: ChannelUse | undefined,
  ): Promise<Claim | undefined> {
    const database = this.#database
    const { payment } = brought
    const identity = last && makeVoucherPayment(payment, last, brought).identity
    const claim = identity === undefined ? undefined : await findClaim(database, { identity })
    // The last one of several uses at one total is the one that was charged.
    if (claim !== undefined) return claim
    const base = computeBase(payment)
    const isAgain = base === channel.charged && channel.last_charge === 0n
    if (base >= channel.charged && !isAgain) return undefined
    const bounds = findIdentityBounds(payment, brought)
    return findLastClaimBetween(database, isAgain ? { ...bounds, most: freeUsesMax } : bounds)
  }

  /** A client that signs anew buys anew where the answer is gone: told so, it would sign the same again for ever. */
  async #findBought(funded: FundedClaim, isSent: boolean): Promise<BoughtReply | undefined> {
    try {
      return await this.#deliverer.findReplyAndCharge(funded)
    } catch (error) {
      if (!isSent && error instanceof Fault && error.code === 'PAYMENT_REPLY_GONE') return undefined
      throw error
    }
  }

  /**
   * Returns false for a voucher that may come from somebody else. Claims, receipts and corrections show used vouchers,
   * so a reader could spend the part that is not charged yet. But stock clients sign the same voucher again for an
   * equal sum. So a used voucher counts only from the sender that used it.
   */
  async isByPayer(
    { charged, uses }: ChannelRow,
    brought: BroughtVoucher,
    { usedFor }: ChannelLook,
  ): Promise<boolean> {
    if (usedFor === undefined) return true
    const claim = await findClaim(this.#database, { id: usedFor })
    const { payment } = makeVoucherPayment(brought.payment, { base: charged, uses }, brought)
    return claim !== undefined && isFromSenderOf(claim.payment, payment)
  }

  /** Finds the claim of this very request, for which the channel is held, and whose process may have died. */
  async findOwn({ channel }: ChannelLook, brought: BroughtVoucher): Promise<Claim | undefined> {
    if (channel === undefined) return undefined
    const use = { base: channel.charged, uses: channel.uses }
    if (computeBase(brought.payment) !== use.base) return undefined
    const { identity, payment } = makeVoucherPayment(brought.payment, use, brought)
    const claim = await findClaim(this.#database, { identity })
    if (claim === undefined || isUntried(claim.state)) return undefined
    return isRepetition(claim.payment, { payment, isPayer: false }) ? claim : undefined
  }
}
