import { limits } from '@tollbase/contract/limits'
import type { World } from '../../../base/world.ts'
import { Gatherer } from '../../../database/gatherer.ts'
import { computeDue, noSize } from '../../../model/compute-cost.ts'
import { isMetered } from '../../../model/compute-metered-cost.ts'
import { findDestination } from '../../../model/payout-settings.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { isNative, type Payment, type SignedPayment } from '../../../x402/protocol.ts'
import { isExpired } from '../../../x402/validity.ts'
import { readAllAvailable } from '../accounts/account-lock.ts'
import type { Claim } from '../claims/claim-store.ts'
import { computeFee, listParts } from '../make-sale.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { canAnswerFirst, type Offer, type Terms } from '../purchase.ts'

/** The wallet that a direct payment may go to. */
export type DirectPayee = {
  /** Lower case. */
  readonly address: string
  /** The seller's account, which owes the platform its share. */
  readonly account: string
  /** Atomic units: that share. */
  readonly fee: bigint
}

/** Quotes whose fees are remembered, of all sellers and of each seller's account; more are paid to us. */
const reservedMax = 50_000
const reservedOfOneMax = 500

/** Finds the sellers that may be paid directly, and reserves the platform's share for those that were quoted so. */
export class DirectPayees {
  readonly #ports: Pick<PaymentPorts, 'tenants' | 'world' | 'split'>
  readonly #available: Gatherer<string, bigint>
  /** Fees by quote, the oldest first: all live for the same time. */
  readonly #reserved = new Map<string, Omit<DirectPayee, 'address'> & { readonly endsMs: number }>()
  readonly #sums = new Map<string, { readonly fees: bigint; readonly quotes: number }>()

  constructor(ports: Pick<PaymentPorts, 'database' | 'tenants' | 'world' | 'split'>) {
    this.#ports = ports
    this.#available = new Gatherer(async (accounts) => {
      const available = await readAllAvailable(ports.database, accounts)
      return accounts.map((account) => available.get(account) ?? 0n)
    })
  }

  /**
   * Finds the seller's wallet for an offer: where the seller wants it, all of the price is its own and known before the
   * answer, and its balance has the platform's share, beside those that were quoted to others.
   */
  async find(offer: Offer, terms: Terms): Promise<DirectPayee | undefined> {
    const { tenants, world, split } = this.#ports
    const app = offer.sellerUnder(terms.prices)
    const settings = tenants.system.payoutSettings.get(app)
    if (settings.direct_settlement !== true || !canPayDirect(offer, terms)) return undefined
    const address = findDestination(settings, tenants.requireRecord(app), world.now())
    if (address === undefined) return undefined
    const account = toApplicationAccount(app)
    const due = computeDue(terms.prices, offer.mostUnder(terms.prices))
    const parts = listParts(due, terms.payees)
    const fee = computeFee({ charge: terms.cap, seller: account, split, parts })
    this.#forgetEnded()
    // Quotes cost next to nothing: whoever asks for many turns off direct payments of the sellers that he asks.
    const { fees, quotes } = this.#sumReserved(account)
    if (quotes >= reservedOfOneMax || this.#reserved.size >= reservedMax) return undefined
    const left = (await this.#available.add(account)) - fees
    return fee <= left ? { address, account, fee } : undefined
  }

  /** Reserves the fee while the quote lives, in this process alone: the lock of the account decides in the end. */
  reserve(quoteId: string, { account, fee }: DirectPayee): void {
    const endsMs = this.#ports.world.now() + limits.quoteLifetimeSeconds * 1000
    this.#reserved.set(quoteId, { account, fee, endsMs })
    const { fees, quotes } = this.#sumReserved(account)
    this.#sums.set(account, { fees: fees + fee, quotes: quotes + 1 })
  }

  /** Ends the reservation of a quote that was used. */
  end(quoteId: string): void {
    const one = this.#reserved.get(quoteId)
    if (one === undefined) return
    this.#reserved.delete(quoteId)
    const { fees, quotes } = this.#sumReserved(one.account)
    if (quotes > 1) this.#sums.set(one.account, { fees: fees - one.fee, quotes: quotes - 1 })
    else this.#sums.delete(one.account)
  }

  #sumReserved(account: string): { readonly fees: bigint; readonly quotes: number } {
    return this.#sums.get(account) ?? { fees: 0n, quotes: 0 }
  }

  #forgetEnded(): void {
    for (const [quoteId, { endsMs }] of this.#reserved) {
      if (endsMs >= this.#ports.world.now()) return
      this.end(quoteId)
    }
  }
}

/**
 * Returns true where the price may be paid to the seller's own wallet: nothing can be given back from there, so the quote
 * must be the charge, and all of it the seller's.
 */
function canPayDirect(offer: Offer, terms: Terms): boolean {
  const { prices, cap } = terms
  const most = offer.mostUnder(prices)
  const least = computeDue(
    prices,
    most.map((size) => size && noSize),
  )
  const isFixed =
    least.reduce((sum, cost) => sum + cost, 0n) === cap &&
    prices.every(({ emptyFree }) => !emptyFree)
  return (
    canAnswerFirst(offer) &&
    !isMetered(prices) &&
    (offer.isByResult === true || isFixed) &&
    isAllOf(computeDue(prices, most), terms, offer.sellerUnder(prices))
  )
}

/** Returns true where every part that costs something is of this application. */
export function isAllOf(
  due: readonly bigint[],
  { payees }: Pick<Terms, 'payees'>,
  app: string,
): boolean {
  const seller = toApplicationAccount(app)
  return payees.every(({ account }, at) => account === seller || (due[at] ?? 0n) === 0n)
}

/** The network as a direct payment to this wallet sees it. */
export function toDirectNetwork(network: PaymentNetwork, address: string): PaymentNetwork {
  return { ...network, payTo: address }
}

/**
 * Returns true for a signed authorization that pays somebody else than us. It is a direct payment where a 402 asked for
 * it, and one that is claimed was asked for.
 */
export function isToOtherAddress(
  payment: Payment,
  network: PaymentNetwork,
): payment is SignedPayment {
  if (isNative(payment) || payment.upto !== undefined || payment.channel !== undefined) return false
  return payment.payload.to !== network.payTo
}

/** The network with the address that a payment pays to. */
export function toPaidNetwork(network: PaymentNetwork, payment: Payment): PaymentNetwork {
  return isToOtherAddress(payment, network) ? toDirectNetwork(network, payment.payload.to) : network
}

/** A payment to its seller that a balance paid in its place, or that was never asked for, brings us nothing. */
export function judgeElsewhere(world: World, claim: Pick<Claim, 'valid_before'>): Settlement {
  return isExpired(world, { validBefore: claim.valid_before })
    ? { state: 'failed', reason: 'expired', final: true }
    : { state: 'pending', reason: 'paid_elsewhere' }
}
