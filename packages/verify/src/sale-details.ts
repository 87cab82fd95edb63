/**
 * The members of a sale beside its facts (receipt.ts): how it was shared out and measured, and what it counts on. Each is
 * there where it says something. The ledger's entry and the receipt have them alike. Amounts are decimal strings of
 * atomic units.
 */
export type SaleDetails = {
  /** The parts of the charge, and who earned them; their `gross` adds up to the charge. Sales from before it was noted lack it. */
  readonly sold?: readonly SoldPart[]
  /** The use of each part that had a price, from which the price can be computed anew. */
  readonly measured?: readonly MeasuredPart[]
  /** The budget that a key's payment counts on: the id of its authorization, or of the key. */
  readonly budget?: string
  /** The day in UTC that it counts on, as 2026-11-29. */
  readonly budget_day?: string
  /** The uses of things that have tiers or quotas. */
  readonly uses?: readonly SoldUse[]
  /** The time pass that was sold. */
  readonly pass?: SoldPass
  /** The voucher of a payment channel that paid. */
  readonly channel?: SaleVoucher
  /**
   * The account that tiers, quotas and passes count for, where that is not the payer: the channel, if another key than its
   * payer's signs its vouchers, because anybody can open such a channel.
   */
  readonly buyer?: string
}

/** A thing that was sold, by the name that its owner knows it by. */
export type SoldItem = {
  readonly kind: 'collection' | 'view' | 'query' | 'batch' | 'other'
  readonly name: string
}

/** A part of a sale's charge: `fee` is the platform's share of `gross`, the rest is the account's. */
export type SoldPart = SoldItem & {
  /** An account of the ledger, as app:shop. */
  readonly account: string
  readonly gross: string
  readonly fee: string
}

/**
 * The use of a sold item, as far as prices depend on it. `granted` is a use by another application's view, and `indexed`
 * is the part of a write that price indexes share out. Price rules decide neither of them.
 */
export type Measured =
  | {
      readonly by: 'rows' | 'derived'
      readonly rows: number
      readonly bytes: number
      /** True where the answer was empty, and nothing is due for that. */
      readonly unpaid?: true
      /** The version of the predefined query. */
      readonly version?: number
    }
  | { readonly by: 'written'; readonly written: readonly MeasuredWrite[] }
  | { readonly by: 'pass'; readonly hours: number }
  | { readonly by: 'granted' | 'indexed' }

export type MeasuredWrite = {
  readonly collection: string
  readonly rows: number
  readonly bytes: number
  /** The sums of the fields whose values had a price, in atomic units. */
  readonly fields?: Readonly<Record<string, string>>
}

/** A part of a sale: what was sold, the account that earned it, what it was charged, and its use. */
export type MeasuredPart = Measured &
  SoldItem & {
    readonly account: string
    readonly charged: string
  }

/** A thing that discounts are counted for, and the account that sells it. */
export type MeteredItem = SoldItem & { readonly account: string }

/** The use by a purchase of one thing in a period, paid and free; decimal strings, KB counted in bytes. */
export type SoldUse = MeteredItem & {
  /** A month or a day in UTC, as 2026-11 or 2026-11-29. */
  readonly period: string
  readonly request: string
  readonly row: string
  readonly kb: string
  readonly free_request: string
  readonly free_row: string
  readonly free_kb: string
}

/** A pass, as the sale of it says. */
export type SoldPass = MeteredItem & { readonly hours: number }

/** The voucher that paid for a sale. */
export type SaleVoucher = {
  /** The channel. */
  readonly id: string
  /** The total of charges to the channel before the sale. */
  readonly base: string
  /** The most that the voucher allows to be claimed of the channel in all. */
  readonly max_claimable: string
  /** Its signature by the payer, or by the key that the channel names, in hex. */
  readonly signature: string
}

/** The names of all details; a type that lacks one of them does not compile. */
export const saleDetailNames = Object.keys({
  sold: true,
  measured: true,
  budget: true,
  budget_day: true,
  uses: true,
  pass: true,
  channel: true,
  buyer: true,
} satisfies Record<keyof SaleDetails, true>)
