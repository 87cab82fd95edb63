import type { SaleVoucher } from '../../projections/channel-books.ts'
import type { Payment, Requirement } from '../../x402/protocol.ts'
import type { KeySpending } from './budgets/check-spending.ts'
import type { NamedUse } from './channels/voucher-payment.ts'
import type { Claim } from './claims/claim-store.ts'
import type { KeptReply } from './claims/reply-store.ts'
import type { Settler } from './payment-ports.ts'
import type { Offer } from './quotes/offer.ts'
import type { Terms } from './quotes/terms.ts'

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
  /** Computes the largest size of each part of what it buys, under these prices. */
  readonly mostUnder?: Offer['mostUnder']
  /** The wallet of its seller, where its own money goes straight there. */
  readonly paidTo?: string
  /** The voucher by which a channel of this payer pays. */
  readonly channel?: {
    readonly payer: string
    readonly voucher: SaleVoucher
    readonly use: NamedUse
  }
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
  /** The answer that was kept together with the claim, and its charge in atomic units. */
  readonly kept?: { readonly keeping: KeptReply; readonly charge: bigint }
}
