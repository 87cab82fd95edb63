import { limits } from '@tollbase/contract/limits'
import type { Measured, SaleVoucher, SoldItem, SoldPass } from '@tollbase/verify/sale-details'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { computeTotalDue, type Size } from '../../model/compute-cost.ts'
import { isMetered } from '../../model/compute-metered-cost.ts'
import type { Price } from '../../model/policy.ts'
import type { SourceName } from '../../model/source-names.ts'
import type { Budget } from '../../model/spending-limits.ts'
import { isSound } from '../../x402/check-exact-payment.ts'
import { isSweep } from '../../x402/deposit-address.ts'
import type { Facilitator, Settlement, Verification } from '../../x402/facilitator.ts'
import {
  isNative,
  type Payment,
  type Requirement,
  type SignedPayment,
} from '../../x402/protocol.ts'
import { digestMeaning } from '../../x402/quote.ts'
import { toUnreachable } from '../../x402/rpc.ts'
import { getNowSeconds } from '../../x402/validity.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { KeySpending } from './budgets/check-spending.ts'
import type { NamedUse } from './channels/voucher-payment.ts'
import type { Claim } from './claims/claim-store.ts'
import type { ReplyToKeep } from './claims/reply-store.ts'
import type { PaymentMethod, PaymentPorts } from './payment-ports.ts'
import type { WriteForm } from './quotes/write-answer-form.ts'

/** The price of one part of an answer. */
export type PartPrice = Price & {
  /** An answer without rows costs nothing on account of this part. */
  readonly emptyFree: boolean
}

/** The owner of a part of the charge. */
export type Payee = {
  /** An account of the ledger. */
  readonly account: string
  /** The least share of the part that the platform gets. */
  readonly platformBasisPoints: number
  /** The thing that the part is paid for, as its owner may know it; terms from before it was noted lack it. */
  readonly item?: SoldItem
}

/** The result of a sale, with its true cost. */
export type Delivery = {
  readonly status: number
  readonly body: Buffer
  /** The type of the body; JSON when not given, and `soldFileType` where the body names a file. */
  readonly contentType?: string | undefined
  /** The size that each part is charged for; null where nothing is due for it. */
  readonly sizes: readonly (Size | null)[]
  /** The use of each part, for the sale's entry; undefined where it is not noted, as that of what has no price. */
  readonly measured?: readonly (Measured | undefined)[] | undefined
  /** The collections and views that records in the body come from, those that cost nothing included. */
  readonly sources?: readonly SourceName[]
  readonly rows: number
  readonly asOf: { readonly block_height: number; readonly sequence: number } | null
}

/**
 * Something for sale: what it is, its price as a function of the request (or of the answer, where `isByResult`), and how
 * to deliver it. It takes prices back: a payment is made under those of its quote, which may not be today's.
 */
export type Offer = {
  /** The application whose chain a paid write goes to; it is there where `writes` is. */
  readonly tenant?: Tenant
  readonly operation: string
  readonly description: string
  /**
   * The sources and definitions that the request resolves to, by id and version; JSON. A quote is bound to it:
   * where the same request means something else later, the quote buys nothing.
   */
  readonly meaning: unknown
  /** For writes: the same without what an earlier try of this payment has made. */
  readonly meaningBefore?: (paymentId: string) => unknown
  /** The payees of the price's parts; their order, too, is part of the offer's meaning. */
  readonly payees: readonly Payee[]
  /** The applications whose definitions decide the price. */
  readonly pricedBy: readonly Tenant[]
  /** Computes today's price of each part; 400 where the request does not say what that takes. */
  readonly pricesNow: () => readonly PartPrice[]
  /** Computes the largest size of each part under these prices; 400 where it cannot be bought by them. */
  readonly mostUnder: (prices: readonly PartPrice[]) => readonly (Size | null)[]
  /** The application that the payment is made to; others get their parts of it. Asked of payments under way, too. */
  readonly sellerUnder: (prices: readonly PartPrice[]) => string
  /**
   * The wallet that may pay by a transfer to the network's own address without a quote. The caller must have proved to
   * act for it, because nothing else binds such a transfer to a buyer. Lower case.
   */
  readonly payer?: string
  /** True where only a payment in the request pays for it: neither a key does, nor anything else by itself. */
  readonly onlyByPayment?: true
  /** True where delivering does something elsewhere, as a seller's own API may: its money comes before. */
  readonly isMoneyFirst?: true
  /** Throws where it could not be delivered now; called before anybody is asked for money, and before money moves. */
  readonly refuseUndeliverable?: () => void
  /** Parts of the price by name, for the 402; it may look at the prices of today alone. */
  readonly breakdownUnder: (prices: readonly PartPrice[]) => Readonly<Record<string, number>>
  /**
   * Does the work and computes its cost by these prices; throws a Fault where it cannot, and then nothing is
   * charged. There is no payment where the cap is zero.
   */
  readonly deliver: (
    prices: readonly PartPrice[],
    paymentId: string | undefined,
  ) => Promise<Delivery>
  /** True where the largest sizes are those of the answer at this moment: an older quote may be too low for it. */
  readonly isByResult?: boolean
  /** The time pass that it sells. */
  readonly pass?: SoldPass
  /** For writes, whose first entry names the payment: how they are answered from the log. */
  readonly writes?: WriteForm
}

/** The terms of a payment: the cap, the prices behind it, and the offer's meaning. */
export type Terms = {
  /** Atomic units; the payment itself is of more where the network's smallest payment is. */
  readonly cap: bigint
  /** The price of each payee's part, in the order of the offer. */
  readonly prices: readonly PartPrice[]
  readonly payees: readonly Payee[]
  /** Digest of what the request resolved to. */
  readonly meaning: string
  readonly quoteId: string
  /** The budget that it is spent under, and the day in UTC that it counts on, where a key pays. */
  readonly budget?: Budget
  /** Unix seconds. */
  readonly expiresAt: number
}

/** A payment for a request, with the terms under which it was made, or the reason why it has none. */
export type MatchedPayment = {
  readonly payment: Payment
  readonly method: PaymentMethod
  readonly resolveTerms: () => Promise<Terms | string>
  /** It is a direct payment: it pays the wallet of its seller, as a 402 asked for. */
  readonly isDirect?: true
}

/** Money that has arrived and buys nothing. */
export type UnmatchedTransfer = {
  readonly payment: Payment
  readonly method: PaymentMethod
  readonly why: string
}

export type PaymentMatch =
  | MatchedPayment
  | { readonly refusal: string }
  | { readonly unmatched: UnmatchedTransfer }
  | 'nothing'

/** The operation of a mere deposit, which stands in place of a request's hash too. */
export const depositOperation = 'deposit'

/** A payment and what it is for. */
export type Paid = {
  readonly payment: Payment
  readonly requirement: Requirement
  readonly settler: Settler
  readonly identity: string
  readonly requestHash: string
  /** The payer signed the request itself. */
  readonly isPayer: boolean
  /** The key that pays it out of a balance, whose limits count. */
  readonly spending?: KeySpending
  /** The offer that it buys; undefined for a mere deposit. */
  readonly offer?: Offer
  /** The wallet of its seller, where its own money goes there. */
  readonly paidTo?: string
  /** The voucher by which a channel of this payer pays. */
  readonly channel?: {
    readonly payer: string
    readonly voucher: SaleVoucher
    readonly use: NamedUse
  }
}

/** The use that a payment is put to. */
export type Purpose = {
  /** The application that it is made to. */
  readonly app: string
  readonly operation: string
  /** Undefined for a mere deposit. */
  readonly terms?: Terms
}

/** A payment under way: the payment, its request and its terms. */
export type Purchase = Paid & { readonly offer: Offer; readonly terms: Terms }

/** A claim whose money has arrived, or is held for it. */
export type FundedClaim = {
  readonly claim: Claim
  /** The transaction that moved its own money; null where the payer's balance is charged instead. */
  readonly transaction: string | null
  /** The claim was made by this very request, so nothing can have been kept or booked for it before. */
  readonly isFresh: boolean
  /** There where it was kept together with the claim. */
  readonly kept?: PlannedAnswer
}

/** An answer that is made before its money is held, and its charge in atomic units. */
export type PlannedAnswer = { readonly keeping: ReplyToKeep; readonly charge: bigint }
/** Makes the answer to be kept together with the claim; undefined where nothing is answered before it is held. */
export type AnswerPlan = ((claim: Claim) => Promise<PlannedAnswer>) | undefined

/**
 * Checks and settles one payment, whatever kind it is of: a Facilitator that knows its payment. An outcome is `settled`
 * by a transaction, `failed` without having moved money, or `pending`: money may have moved, or may still move.
 */
export type Settler = {
  /** All that can be told without asking anybody is right: terms, times and the payer's signature. */
  readonly isSound: () => boolean
  /** The chain has seen its authorization used, or canceled. */
  readonly isUsed: () => Promise<boolean>
  /** Asks the chain as well whether the payment would move its money now. */
  readonly verify: () => Promise<Verification>
  /** Reads by what a payment was made that was never handed to `settle`; sends nothing. */
  readonly findUse: () => Promise<Settlement>
  /** Reads what the payer has on the chain, in atomic units; undefined where no node could tell. */
  readonly readFunds: () => Promise<bigint | undefined>
  /** Moves its money, once: the same id is the same transaction, however often and after whatever crash. */
  readonly settle: (id: string) => Promise<Settlement>
  /** Reads what became of a payment that was, or never was, handed to `settle` under this id; sends nothing. */
  readonly lookup: (id: string) => Promise<Settlement>
}

/**
 * Returns true where the answer may be made before its money is here, or held, as the scheme `upto` does: making it does
 * nothing else. A write is made once its money is here, a pass is named by its payment, and a mere deposit is no charge.
 */
export function canAnswerFirst({ isMoneyFirst, operation, writes, pass }: Offer): boolean {
  const isPaidFirst = writes !== undefined || pass !== undefined || operation === depositOperation
  return isMoneyFirst !== true && !isPaidFirst
}

/** Returns true where the cap is the charge, so that the scheme `upto` may take it before: of a write and of a pass. */
export function isCostKnown({ writes, pass }: Offer, { prices }: Pick<Terms, 'prices'>): boolean {
  return (writes !== undefined || pass !== undefined) && !isMetered(prices)
}

/**
 * Computes the most that the request costs by today's prices; 0 where it costs nothing. 400 where it cannot be
 * bought.
 */
export function computeCap(offer: Offer): bigint {
  const cap = computeCapUnder(offer, offer.pricesNow())
  if (cap > limits.amountAtomicMax) {
    throw makeInvalidFault(
      '',
      `would cost up to ${cap} atomic units, more than the ${limits.amountAtomicMax} that one payment may have; ask for less`,
    )
  }
  return cap
}

function computeCapUnder(offer: Offer, prices: readonly PartPrice[]): bigint {
  return computeTotalDue(prices, offer.mostUnder(prices))
}

/** Returns false where the answer has come to cost more by these prices than was quoted for it. */
export function isStillQuoted(offer: Offer, { prices, cap }: Pick<Terms, 'prices' | 'cap'>) {
  return offer.isByResult !== true || computeCapUnder(offer, prices) <= cap
}

/** Digests what the request resolves to now, and its payees. */
export function digestOffer(secret: Uint8Array, offer: Offer): string {
  const known = digests.get(offer)
  if (known !== undefined) return known
  const { operation, meaning, payees } = offer
  const digest = digestMeaning(secret, JSON.stringify([operation, meaning, payees]))
  digests.set(offer, digest)
  return digest
}

/** Several parts of a sale ask for the digest of the same offer. */
const digests = new WeakMap<Offer, string>()

/** Throws where the offer is not any more what the terms are of. */
export function checkOffer(
  { quoteSecret }: Pick<PaymentPorts, 'quoteSecret'>,
  offer: Offer,
  terms: Terms,
): void {
  const isSame = terms.meaning === digestOffer(quoteSecret, offer)
  if (!isSame || !isStillQuoted(offer, terms)) throw new Fault('OFFER_CHANGED')
}

/** Returns true if the request costs nothing today; false if it cannot be bought today. */
export function isFreeNow(offer: Offer): boolean {
  try {
    return computeCap(offer) === 0n
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

/** Delivers, without a payment, an offer that costs nothing. */
export function makeFreeDelivery(offer: Offer): Promise<Delivery> {
  return offer.deliver(offer.pricesNow(), undefined)
}

/** Makes the purchase of an offer by the payment that a request brought. */
export function makePurchase(
  ports: Pick<PaymentPorts, 'depositSecret' | 'world'>,
  brought: Pick<MatchedPayment, 'payment' | 'method'> & {
    readonly hash: string
    readonly identity: string
    readonly isPayer: boolean
  },
  due: Pick<Purchase, 'offer' | 'terms' | 'requirement'>,
): Purchase {
  const { payment, method, hash: requestHash, identity, isPayer } = brought
  const { requirement } = due
  const settler = makeSettler(ports, method, { payment, requirement })
  return { ...due, payment, settler, requestHash, identity, isPayer }
}

/** Makes the purpose of a payment for an offer under these terms. */
export function makePurpose(offer: Offer, terms: Terms): Purpose & { readonly terms: Terms } {
  return { app: offer.sellerUnder(terms.prices), operation: offer.operation, terms }
}

/** Makes the settler that checks and settles this payment. */
export function makeSettler(
  ports: Pick<PaymentPorts, 'depositSecret' | 'world'>,
  method: PaymentMethod,
  due: { payment: Payment; requirement: Requirement },
): Settler {
  const { payment, requirement } = due
  if (!isNative(payment)) {
    const facilitator = payment.upto === undefined ? method.facilitator : method.upto
    if (facilitator === undefined)
      throw toUnreachable(new Error(`${method.network.id} takes no payments of its scheme now`))
    const { payTo } = method.network
    return makeSignedSettler(ports, { facilitator, payTo }, { payment, requirement })
  }
  const { native } = method
  if (native === undefined) throw toUnreachable(new Error(`${method.network.id} has no node now`))
  const settle = () => native.settle(payment)
  // It was found on the chain, and judged, before anything was claimed.
  return {
    isSound: () => true,
    isUsed: async () => true,
    verify: async () => ({ ok: true }),
    readFunds: async () => undefined,
    findUse: settle,
    settle,
    lookup: settle,
  }
}

function makeSignedSettler(
  { depositSecret, world }: Pick<PaymentPorts, 'depositSecret' | 'world'>,
  { facilitator, payTo }: { facilitator: Facilitator; payTo: string },
  { payment, requirement }: { payment: SignedPayment; requirement: Requirement },
): Settler {
  // No quote's own address ever signs a permit. A transfer that we send out pays for nothing at its recipient.
  const isOurs =
    payment.payload.from === payTo ||
    (payment.upto === undefined && isSweep(depositSecret, payment.payload))
  return {
    isSound: () => !isOurs && isSound(payment, requirement, getNowSeconds(world)),
    isUsed: () => facilitator.isUsed(payment, requirement),
    verify: async () => {
      if (!isOurs) return facilitator.verify(payment, requirement)
      const field = 'payload.authorization.from'
      const detail = 'must not be an address of this service'
      return { ok: false, reason: 'mismatch', field, detail }
    },
    findUse: () => facilitator.findUse(payment, requirement),
    readFunds: async () => facilitator.readFunds?.(payment, requirement),
    settle: (id) => facilitator.settle(id, payment, requirement),
    lookup: (id) => facilitator.lookup(id, payment, requirement),
  }
}
