import type { Price } from '../tenancy/policy.ts'
import type { Tenant } from '../tenancy/tenancy.ts'

/** What one part of an answer costs. */
export type PartPrice = Price & {
  /** An answer without rows costs nothing on account of this part. */
  readonly emptyFree: boolean
}

/** Whose a part of the charge is. */
export type Payee = {
  /** Of the ledger. */
  readonly account: string
  /** At least so much of the part is the platform's. */
  readonly platformBasisPoints: number
}

/** What a sale delivers, and what it truly costs. */
export type Delivery = {
  readonly status: number
  readonly body: Buffer
  /** Of the body; JSON when not given. */
  readonly contentType?: string | undefined
  /** Atomic units of each part; nothing beyond the quote is charged. */
  readonly due: readonly bigint[]
  readonly rows: number
  readonly asOf: { readonly block_height: number; readonly sequence: number } | null
}

/** Something for sale: what it is, its price as a function of the request alone, and how to deliver it. */
export type Offer = {
  /** Whose chain a paid write goes to. */
  readonly tenant: Tenant
  readonly operation: string
  readonly description: string
  /**
   * What the request resolves to: sources and definitions by their ids and versions. JSON. A quote is for this: where
   * the same request means something else later, it buys nothing.
   */
  readonly meaning: unknown
  /** For writes: the same without what an earlier try of this payment has made. */
  readonly meaningBefore?: (paymentId: string) => unknown
  /** Who is paid for the parts of its price; their order, too, is a part of what it means. */
  readonly payees: readonly Payee[]
  /** Whose definitions decide what it costs. */
  readonly pricedBy: readonly Tenant[]
  /** What each part costs today; 400 where the request does not say what it takes. */
  readonly pricesNow: () => readonly PartPrice[]
  /** What the request costs at most by such prices; 400 where it cannot be bought by them. */
  readonly capUnder: (prices: readonly PartPrice[]) => bigint
  /** The application that the payment is made to; others get their parts of it. */
  readonly sellerUnder: (prices: readonly PartPrice[]) => string
  /**
   * Whose transfer to the network's own address may pay for it without a quote: one for whom the caller has proved
   * to act, because nothing else binds such a transfer to a buyer. Lower case.
   */
  readonly payer?: string
  /** Throws where it could not be delivered now; asked before anybody is asked for money, and before money moves. */
  readonly admit?: () => void
  /** Parts of the price by name. */
  readonly breakdownUnder: (prices: readonly PartPrice[]) => Readonly<Record<string, number>>
  /**
   * Does the work and reckons by these prices; throws a Fault where it cannot, and then nothing is charged.
   * There is no payment where the cap is nothing.
   */
  readonly deliver: (
    prices: readonly PartPrice[],
    paymentId: string | undefined,
  ) => Promise<Delivery>
  /** For writes: what an earlier try of the same payment wrote after this height, if it did. */
  readonly recover?: (
    prices: readonly PartPrice[],
    paymentId: string,
    afterHeight: number,
  ) => Promise<Delivery | undefined>
}
