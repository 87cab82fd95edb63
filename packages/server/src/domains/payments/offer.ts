import type { Catalog } from '../tenancy/catalog.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import type { Share } from './entries.ts'

/** What a sale delivers, and what it truly costs. */
export type Delivery = {
  readonly status: number
  readonly body: Buffer
  /** Of the body; JSON when not given. */
  readonly contentType?: string | undefined
  /** Atomic units; what exceeds the quote is not charged. */
  readonly charge: bigint
  /** Parts of the charge that are not shared out as usual. */
  readonly shares?: readonly Share[]
  /** What of the charge is the seller's own: parts of others that have risen since the quote take nothing from it. */
  readonly own?: bigint
  readonly rows: number
  readonly asOf: { readonly block_height: number; readonly sequence: number } | null
}

/** Something for sale: its price as a function of the request alone, and how to deliver it. */
export type Offer = {
  readonly tenant: Tenant
  readonly operation: string
  readonly description: string
  /** What the request costs at most under a catalog's prices; undefined where it cannot be bought under them. */
  readonly capUnder: (catalog: Catalog) => bigint | undefined
  /**
   * Whose transfer to the network's own address may pay for it without a quote: one for whom the caller has proved
   * to act, because nothing else binds such a transfer to a buyer. Lower case.
   */
  readonly payer?: string
  /** Parts of the price by name. */
  readonly breakdown: Readonly<Record<string, number>>
  /**
   * Does the work under the prices of a catalog; throws a Fault where it cannot, and then nothing is charged.
   * There is no payment where the cap is nothing.
   */
  readonly deliver: (catalog: Catalog, paymentId: string | undefined) => Promise<Delivery>
  /** For writes: what an earlier try of the same payment wrote after this height, if it did. */
  readonly recover?: (
    catalog: Catalog,
    paymentId: string,
    afterHeight: number,
  ) => Promise<Delivery | undefined>
}
