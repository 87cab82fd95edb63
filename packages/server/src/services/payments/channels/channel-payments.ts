import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../../base/assert.ts'
import { Fault } from '../../../base/fault.ts'
import { Singleflight } from '../../../base/singleflight.ts'
import type { ChannelRow } from '../../../projections/channel-tables.ts'
import type { ChannelPayment } from '../../../x402/channels/channel-payment.ts'
import { getNowSeconds } from '../../../x402/validity.ts'
import { accountSettler } from '../budgets/account-settler.ts'
import type { Claim } from '../claims/claim-store.ts'
import { decodeClaimTerms } from '../claims/claim-terms.ts'
import type { Claims } from '../claims/claims.ts'
import { isUntried } from '../claims/payment-states.ts'
import type { Deliverer } from '../deliverer.ts'
import {
  type Delivery,
  isFreeNow,
  makeFreeDelivery,
  makePurpose,
  type Offer,
  type Purchase,
} from '../purchase.ts'
import { makeRequirement, type QuotePorts, resolveChannelTerms } from '../quotes/quoting.ts'
import type { BoughtReply } from '../replies/bought-reply.ts'
import { ChannelLooks } from './channel-looks.ts'
import { encodeChannelNotice } from './channel-notice.ts'
import {
  type ChannelLook,
  type ChannelMethod,
  getUsable,
  loadChannel,
  type NamedChannel,
  syncChannel,
  takeOverBase,
  watchMs,
} from './channel-register.ts'
import {
  findChannelProblem,
  findDepositProblem,
  formatChannelRefusal,
} from './check-channel-payment.ts'
import { fillChannel, type Moved } from './fill-channel.ts'
import { isRefundByPayer, sendRefund } from './refund-channel.ts'
import { UsedVouchers } from './used-vouchers.ts'
import {
  type BroughtVoucher,
  computeBase,
  makeVoucherPayment,
  readVoucher,
} from './voucher-payment.ts'

/** The outcome for a request, with the channel as it was left. */
export type ChannelOutcome =
  | { readonly bought: BoughtReply; readonly notice: string }
  | { readonly free: () => Promise<Delivery> }
  | { readonly refunded: bigint; readonly notice: string }
  | { readonly refusal: string }
  /** The payer's books are wrong: this is the channel, where there is one. */
  | { readonly correction: ChannelRow | undefined }

type ReadyVoucher = BroughtVoucher & { readonly method: ChannelMethod; readonly moved: Moved }

/** The channel is used by another request or process, or has moved on since it was read. */
class ChannelMoved extends Error {}

const busyPauseMs = 20
/** Tasks that wait for a channel: its payer may send many requests at once. */
const waitingMax = 64
/** Channels that are remembered to have been looked at. */
const seenMax = 10_000

/**
 * Sells for vouchers of payment channels. A channel pays for one request at a time: the lock of its account and the
 * hold on it are those of balances, in all processes; what is charged is signed for, so it can be claimed.
 */
export class ChannelPayments {
  readonly #ports: QuotePorts
  readonly #claims: Claims
  readonly #deliverer: Deliverer
  readonly #payments: Singleflight
  readonly #turns = new Singleflight()
  readonly #looks: ChannelLooks
  readonly #used: UsedVouchers
  /** When the chain was last asked about a channel: its payer may be taking money back. */
  readonly #seenMs = new Map<string, number>()

  constructor(parts: {
    readonly ports: QuotePorts
    readonly claims: Claims
    readonly deliverer: Deliverer
    /** The payments that are under way in this process. */
    readonly payments: Singleflight
  }) {
    this.#ports = parts.ports
    this.#claims = parts.claims
    this.#deliverer = parts.deliverer
    this.#payments = parts.payments
    this.#looks = new ChannelLooks(parts.ports)
    this.#used = new UsedVouchers({ ...parts, database: parts.ports.database })
  }

  /** Takes a payment by a channel; each channel takes its turn. */
  async take(offer: Offer, brought: BroughtVoucher): Promise<ChannelOutcome> {
    const { payment, hash } = brought
    const method = this.findMethod(payment)
    if (method === undefined) return { refusal: formatChannelRefusal('network_mismatch') }
    const problem =
      findChannelProblem(method, payment) ??
      findDepositProblem(method, payment, getNowSeconds(this.#ports.world))
    if (problem !== undefined) return { refusal: problem }
    const { channelId, maxClaimable, signature } = payment.voucher
    const salt = payment.deposit?.salt ?? ''
    const kind = payment.refund === undefined ? 'buy' : `refund ${payment.refund.amount ?? ''}`
    const sender = [brought.origin, payment.quoteId]
    const task = [kind, hash, maxClaimable, signature, salt, ...sender].join(' ')
    if (this.#turns.isFull(channelId, task, waitingMax)) throw makeBusyFault()
    return this.#turns.run(channelId, task, () => this.#takeTurn(offer, { ...brought, method }))
  }

  /** Finds the reply that this very request bought with this very voucher, where that was charged. */
  async findBoughtReply(
    brought: BroughtVoucher,
  ): Promise<Extract<ChannelOutcome, { bought: unknown }> | undefined> {
    const { payment } = brought
    const method = this.findMethod(payment)
    if (method === undefined || payment.refund !== undefined) return undefined
    const { channel } = await this.#looks.look(payment.voucher)
    return channel && this.#giveRepeated(channel, { ...brought, method, moved: {} })
  }

  findMethod({ network }: ChannelPayment): ChannelMethod | undefined {
    const method = this.#ports.methods.find((one) => one.network.id === network)
    const escrow = method?.escrow
    return method && escrow && { ...method, escrow }
  }

  async #takeTurn(
    offer: Offer,
    brought: BroughtVoucher & { readonly method: ChannelMethod },
  ): Promise<ChannelOutcome> {
    const { world } = this.#ports
    const { payment, method } = brought
    const deadline = world.now() + limits.channelWaitMs
    let moved: Moved = {}
    const run = async (look: ChannelLook, own: Claim | undefined): Promise<ChannelOutcome> => {
      if (payment.refund !== undefined)
        return (await isRefundByPayer(this.#ports, brought))
          ? sendRefund(this.#ports, { method, payment })
          : { refusal: formatChannelRefusal('refund_by_another_sender') }
      const ready = { ...brought, moved, look, own }
      return this.#buy(offer, ready, (made) => {
        moved = made
      })
    }
    try {
      for (;;) {
        const look = await this.#looks.look(payment.voucher)
        // A request that stopped in the middle is gone on with, if it is this one.
        const own = look.isHeld ? await this.#used.findOwn(look, brought) : undefined
        if (!look.isHeld || own !== undefined) {
          try {
            return await run(look, own)
          } catch (error) {
            this.#looks.forget(payment.voucher.channelId)
            if (!(error instanceof ChannelMoved)) throw error
          }
        }
        if (world.now() > deadline) throw makeBusyFault()
        await world.sleep(busyPauseMs)
      }
    } catch (error) {
      if (moved.transaction === undefined) throw error
      throw await this.#tellDeposit(error, { ...brought, moved })
    }
  }

  /** A client that is not told that its deposit came makes another one. */
  async #tellDeposit(error: unknown, { method, payment, moved }: ReadyVoucher): Promise<unknown> {
    const channel = await loadChannel(this.#ports, payment.voucher.channelId).catch(() => undefined)
    if (channel === undefined) return error
    const notice = encodeChannelNotice(method.network, channel, { ...moved, charge: 0n })
    const fault = error instanceof Fault ? error : new Fault('INTERNAL', { cause: error })
    return fault.withHeaders({ 'payment-response': notice })
  }

  async #buy(
    offer: Offer,
    brought: ReadyVoucher & { readonly look: ChannelLook; readonly own: Claim | undefined },
    noteDeposit: (moved: Moved) => void,
  ): Promise<ChannelOutcome> {
    const { payment, method, hash, look, own } = brought
    const { channelId: id, maxClaimable } = payment.voucher
    const named = { id, config: payment.config }
    // A channel that was not there may have come since: its payer, or a request that died, has filled it.
    const isKnown = look.channel !== undefined && this.#isFresh(id)
    let channel = isKnown ? look.channel : await this.#refresh(method, named)
    const repeated = channel && (await this.#giveRepeated(channel, brought))
    if (repeated !== undefined) return repeated
    const base = computeBase(payment)
    if (own === undefined && isFreeNow(offer)) return { free: () => makeFreeDelivery(offer) }
    if (base < (channel?.charged ?? 0n)) return { correction: channel }
    const isNew = own === undefined
    if (channel !== undefined && isNew && !(await this.#used.isByPayer(channel, brought, look)))
      return { correction: channel }
    const { network } = method
    // The terms of a purchase that goes on are those that it began by: it may have written by now.
    const terms = isNew
      ? resolveChannelTerms(this.#ports, offer, { payment, network, hash })
      : decodeClaimTerms(own)
    if (typeof terms === 'string') return { refusal: terms }
    if (isNew) offer.refuseUndeliverable?.()
    let { moved } = brought
    // A purchase that goes on has its money, which is held, whatever its payer takes back of the rest.
    if (isNew && maxClaimable > (channel === undefined ? 0n : getUsable(channel))) {
      const filled = await fillChannel(this.#ports, brought, {
        channel,
        refresh: (movedBy) => this.#refresh(method, { ...named, movedBy }),
      })
      if ('correction' in filled || 'refusal' in filled) return filled
      ;({ channel, moved } = filled)
      noteDeposit(moved)
    }
    if (channel === undefined) return { correction: channel }
    if (base > channel.charged)
      channel = await takeOverBase(this.#ports, channel, { base, voucher: payment.voucher })
    if (channel === undefined) throw new ChannelMoved()
    const { mostUsed } = look
    return this.#sell(offer, { ...brought, moved, channel, mostUsed, terms })
  }

  #isFresh(id: string): boolean {
    return this.#ports.world.now() < (this.#seenMs.get(id) ?? 0) + watchMs
  }

  async #refresh(
    method: ChannelMethod,
    named: NamedChannel & { readonly movedBy?: string | undefined },
  ): Promise<ChannelRow | undefined> {
    const nowMs = this.#ports.world.now()
    const channel = await syncChannel(this.#ports, method, named)
    this.#seenMs.delete(named.id)
    this.#seenMs.set(named.id, nowMs)
    const [oldest] = this.#seenMs.keys()
    if (this.#seenMs.size > seenMax && oldest !== undefined) this.#seenMs.delete(oldest)
    return channel
  }

  async #sell(
    offer: Offer,
    sold: ReadyVoucher & {
      readonly channel: ChannelRow
      readonly mostUsed: bigint
      readonly terms: Purchase['terms']
    },
  ): Promise<ChannelOutcome> {
    const { payment, hash, channel, method } = sold
    const use = { base: channel.charged, uses: channel.uses }
    const by = makeVoucherPayment(payment, use, sold)
    const repeatable = { identity: by.identity, requestHash: hash, payment: by.payment }
    return this.#payments.run(by.identity, hash, async () => {
      const found = await this.#claims.finder.findOrRefuse({ ...repeatable, isPayer: true })
      const terms = found && !isUntried(found.state) ? decodeClaimTerms(found) : sold.terms
      const purchase: Purchase = {
        ...repeatable,
        isPayer: true,
        offer,
        terms,
        requirement: makeRequirement(method.network, { ...terms, amount: terms.cap }),
        settler: accountSettler,
        channel: requirePresent(readVoucher(by.payment), 'the voucher of a payment by a channel'),
      }
      const purpose = makePurpose(offer, terms)
      const plan = this.#deliverer.planAnswer(purchase)
      const funded =
        this.#claims.findFunded(found) ??
        (await this.#claims.balances.payIfCovered(purchase, purpose, { found, plan }))
      if (funded === undefined) throw new ChannelMoved()
      const bought = await this.#deliverer.deliver(purchase, funded)
      const { charge } = bought
      const isSoldNow = funded.isFresh && funded.claim.state === 'sold'
      if (isSoldNow) this.#looks.noteSale(sold, { voucher: payment.voucher, charge })
      else this.#looks.forget(channel.id)
      return { bought, notice: this.#encodeNotice(sold, channel, { base: use.base, bought }) }
    })
  }

  async #giveRepeated(
    channel: ChannelRow,
    brought: ReadyVoucher,
  ): Promise<Extract<ChannelOutcome, { bought: unknown }> | undefined> {
    const found = await this.#used.findRepeated(channel, brought)
    return found && { bought: found.bought, notice: this.#encodeNotice(brought, channel, found) }
  }

  #encodeNotice(
    { method, moved }: ReadyVoucher,
    channel: ChannelRow,
    sale: { readonly base: bigint; readonly bought: BoughtReply },
  ): string {
    const { charge } = sale.bought
    const after = { ...channel, charged: sale.base + charge }
    return encodeChannelNotice(method.network, after, { ...moved, charge })
  }
}

function makeBusyFault(): Fault {
  return new Fault('PAYMENT_PENDING', {
    message:
      'This channel is paying for another request; send this request again when that one has ended',
    retryAfterSeconds: 2,
    details: { status: 'pending' },
  })
}
