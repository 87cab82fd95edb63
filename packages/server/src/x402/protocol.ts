import type { PaymentNetwork } from './networks.ts'
import type { UptoTerms } from './upto/upto-terms.ts'

/** The cost of one request on one network: the promise that a quote id stands for. */
export type Requirement = {
  readonly network: PaymentNetwork
  /** Atomic units; the payment's value must equal it. */
  readonly amount: bigint
  /** Made by quote.ts. */
  readonly quoteId: string
  /** The end of the quote, in seconds since 1970. */
  readonly expiresAt: number
  readonly maxTimeoutSeconds: number
  /** Parts of the price by name, for display. */
  readonly costBreakdown?: Readonly<Record<string, number>>
  /**
   * The most that the request costs, if the network's smallest payment is more; the rest is added to the payer's
   * balance.
   */
  readonly price?: bigint
  /** The address for plain transfers for this quote, and for no other; absent if they are not accepted. */
  readonly depositAddress?: string
  /** Its transaction must make no other payment: the server that it is for may count each transaction once. */
  readonly isAlone?: true
  /** The most payments of its payer to its payee that are under way, beside one for each that was made. */
  readonly unprovenMax?: number
}

/** The signed fields of an EIP-3009 transferWithAuthorization; hexadecimal text is lower case. */
export type ExactPayment = {
  readonly from: string
  readonly to: string
  readonly value: bigint
  /** Seconds since 1970, like validBefore. */
  readonly validAfter: bigint
  readonly validBefore: bigint
  /** 32 bytes; unique per token and payer. */
  readonly nonce: string
  /** r, s, v: 65 bytes, v is 27 or 28. */
  readonly signature: string
}

/** The requirement that a version 2 payment says it accepts. */
export type Accepted = {
  readonly scheme: string
  readonly network: string
  readonly amount: bigint
  readonly asset: string
  readonly payTo: string
}

/** The value that a payer has moved to one address by one transaction of its own, as the chain shows it. */
export type NativeTransfer = {
  readonly from: string
  readonly to: string
  readonly value: bigint
  /** The hash of the transaction. */
  readonly transaction: string
  /** The index of its first log among the transaction's logs, from 0. */
  readonly logIndex: number
  readonly blockNumber: bigint
  /** The time of its block, in seconds since 1970. */
  readonly blockTime: bigint
}

type Envelope = {
  readonly version: 1 | 2
  /** CAIP-2. */
  readonly network: string
  readonly scheme: 'exact' | 'upto'
  /** Absent if the client does not echo it, as stock version 1 clients do not. */
  readonly quoteId?: string
  /**
   * The form in which the client wants its receipt: version 1 clients that send a quoteId (the public SDK) parse
   * the header as JSON without decoding base64 first.
   */
  readonly receiptForm: 'base64' | 'json'
}

/** A signed authorization, read strictly; nothing in it has been checked against anything yet. */
export type SignedPayment = Envelope & {
  readonly accepted?: Accepted
  /**
   * Names the sender of a payment without a quote, in place of the quote that only its buyer knows: any one of its
   * words is enough.
   */
  readonly origin?: string
  /** The payer's name for the payment, by the extension payment-identifier. */
  readonly identifier?: string
  /** There in the scheme `upto`: then the value of `payload` is what is taken, and at first the most that may be. */
  readonly upto?: UptoTerms
  /** There where a channel pays: its payer, and the most that its voucher allows. */
  readonly channel?: {
    readonly payer: string
    readonly maxClaimable: bigint
    /** Another key than the payer's signed it, and the payer did not sign the request. */
    readonly isByOther?: true
  }
  readonly payload: ExactPayment
}

/** A transfer that the payer made itself, found on the chain. */
export type NativePayment = Envelope & { readonly payload: NativeTransfer }

export type Payment = SignedPayment | NativePayment

/** A payer's claim about a transfer that it made itself: nothing in it counts until the chain shows it. */
export type NativeProof = Omit<Envelope, 'network'> & {
  /** The network's CAIP-2 id; absent if the client does not know it. */
  readonly network?: string
  /** Hash of the transaction. */
  readonly transaction: string
  /** The sender; absent if the client does not know it. */
  readonly sender?: string
}

/** A payment as a request carries it. */
export type PresentedPayment = SignedPayment | NativeProof

export function isNative(payment: Payment): payment is NativePayment {
  return 'transaction' in payment.payload
}
