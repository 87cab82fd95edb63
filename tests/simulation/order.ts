import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import type { Shelf } from './letter-rules.ts'
import type { LibraryItem } from './library.ts'
import type { Answer, Asked } from './send-request.ts'

/** One payment and its outcome, as its buyer knows it. */
export type Order = {
  readonly name: string
  readonly kind: 'read' | 'write' | 'deposit'
  readonly asked: Asked
  readonly headers: Readonly<Record<string, string>>
  readonly network: PaymentNetwork
  readonly payer: string
  readonly nonce: string
  /** The amount that the buyer was asked for and signed. */
  readonly amount: bigint
  /**
   * The most that the request costs, as the buyer was told: less than the amount where the network's smallest
   * payment is more.
   */
  readonly price: bigint
  /** News of the press are read, at one price for all. */
  readonly isNews: boolean
  /** Letters or samples of the shop. */
  readonly shelf: Shelf | undefined
  /** Signed for the most, of which its true cost is taken. */
  readonly isUpto: boolean
  /** Its money goes to the press's own wallet. */
  readonly isDirect: boolean
  /** Something of the library. */
  readonly libraryItem: LibraryItem | undefined
  /** The supplier's records are joined. */
  readonly isJoin: boolean
  readonly derive: bigint
  /** Rows that were asked for, or records to write. */
  readonly rows: number
  readonly validBefore: number
  /** The market's steps at which it was signed, and first delivered. */
  readonly signedStep: number
  deliveredStep: number | undefined
  /** The quote that the payment speaks of; clients of version 1 speak of none. */
  readonly quoteId: string | undefined
  /** The same payment, brought for nothing but its payer's balance. */
  readonly settling: Asked
  /** Somebody else handed it to the token, for good, before it came to the service: it buys nothing. */
  isUsedBefore: boolean
  /**
   * Somebody else hands it to the token at about the time at which it comes: whether it buys something depends on which
   * comes first.
   */
  isOvertaken?: boolean
  /** The address of its quote, where the payer moved its money there by itself. */
  readonly depositAddress?: string
  /** The transfer has less than the quote asked for: it buys nothing. */
  readonly isTooLittle?: boolean
  /** Its payer was told so: then its money is on the balance without any more being asked. */
  isKept?: boolean
  /** It asks for its own money to be taken, and not its payer's balance. */
  readonly isBalanceOff: boolean
  /** Its money is on its payer's balance, and something else was bought with it meanwhile. */
  isSpent: boolean
  /** It names no quote, and the process that it came to does not know what its payer was asked for. */
  isForgotten?: boolean
  /** The answer that was delivered first; all later answers must be the same. */
  delivered:
    | { readonly text: string; readonly paymentId: string; readonly isFromBalance: boolean }
    | undefined
}

/** The name that a payer gives to a payment (payment-identifier), and an earlier order whose request it repeats. */
export type Naming = {
  readonly id: string
  readonly like?: Pick<Order, 'kind' | 'asked' | 'rows'> | undefined
}

/** Something to buy, and the 402 that says its price. */
export type Quoted = {
  readonly name: string
  readonly kind: Order['kind']
  readonly isJoin: boolean
  readonly isNews: boolean
  readonly libraryItem: LibraryItem | undefined
  readonly shelf: Shelf | undefined
  readonly asked: Asked
  readonly own: Readonly<Record<string, string>>
  readonly rows: number
  readonly naming: Naming | undefined
  readonly answer: Answer
}

/** The part of a purchase that checks of sales and answers need, however it was paid. */
export type Bought = Pick<
  Order,
  | 'name'
  | 'kind'
  | 'asked'
  | 'network'
  | 'payer'
  | 'nonce'
  | 'quoteId'
  | 'isJoin'
  | 'isNews'
  | 'shelf'
  | 'libraryItem'
  | 'isDirect'
  | 'rows'
  | 'delivered'
>

/** The smallest payment on the service's own network: less is worth less than the gas that it costs. */
export const smallestPayment = 1_000n

/** Says that the service rightly refuses the order at every try. */
export function isTooSmall({ kind, amount, isUsedBefore, isOvertaken }: Order): boolean {
  return kind === 'deposit' && amount < smallestPayment && !isUsedBefore && isOvertaken !== true
}

/** Says that the money has arrived and buys nothing. */
export function isUnmatched({ kind, isUsedBefore, isTooLittle }: Order): boolean {
  return (isUsedBefore || isTooLittle === true) && kind !== 'deposit'
}

/** Says that only who brings it for its payer's balance tells the service of its money, perhaps. */
export function mayBeUnknown({ isUsedBefore, isOvertaken, isTooLittle, isKept }: Order): boolean {
  return isUsedBefore || isOvertaken === true || (isTooLittle === true && isKept !== true)
}

export function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

/** Reads the rows of an answer: a predefined query has another word for them. */
export function readRows(text: string): readonly { readonly sample: string }[] | undefined {
  const { data, records = data } = JSON.parse(text)
  return records
}
