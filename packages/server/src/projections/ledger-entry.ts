import type { SaleDetails } from '@tollbase/verify/sale-details'
import type { AppliedEntry } from '../chain/applier.ts'

/**
 * Double entry: each `ledger` entry of the system chain carries postings that sum to zero.
 * Accounts: `wallet:<address>` of payers, `app:<app_id>`, `platform`, `outside:<network>`, which is what came in from
 * there, so it is never positive, `transit:<network>`, which is on its way out to there, `held:<account>:<payment>`,
 * which is held for an account (held-payments.ts), `losses`, which is what reversals took from no balance, as a debt of
 * the operator, and those of channels (channel-books.ts).
 */
export type Posting = {
  readonly account: string
  readonly amount: string
  /**
   * There where the line is of another kind than its entry: money of a sale that its seller has in its own wallet, or
   * the operator's fee for a withdrawal.
   */
  readonly kind?: 'direct' | 'withdrawal_fee'
}

/** Lists the postings of these amounts; an account that gets nothing has none. */
export function listPostings(amounts: readonly (readonly [string, bigint])[]): Posting[] {
  return amounts
    .filter(([, amount]) => amount !== 0n)
    .map(([account, amount]) => ({ account, amount: String(amount) }))
}

export const toWalletAccount = (address: string) => `wallet:${address}`
export const toApplicationAccount = (appId: string) => `app:${appId}`
/** The account that a payer is charged on: a wallet's, an application's whose key pays, or a channel's. */
export const toPayerAccount = (payer: string) =>
  /^(app|channel):/.test(payer) ? payer : toWalletAccount(payer)
/** Reads who bought by a sale: its payer, or the account that it names beside it. */
export const getBuyer = ({ buyer, payer }: { readonly buyer?: string; readonly payer?: unknown }) =>
  buyer ?? String(payer)
export const platformAccount = 'platform'
/** The account of what reversals took from no balance, as a debt: never positive. */
export const lossesAccount = 'losses'

/**
 * deposit: money came in. release: money that was held is put on an account. sale: it bought something. refund: its
 * seller gives some of it back. storage_fee: an application pays for a day of storage. reversal: its chain does not have
 * the money of a deposit, or a transfer of ours, any more, and never will. Those of channels are in
 * channel-books.ts, the others are the steps of a transfer of ours, out of `pay_to`.
 */
export type LedgerKind =
  | 'deposit'
  | 'release'
  | 'sale'
  | 'refund'
  | 'storage_fee'
  | 'reversal'
  | 'withdrawal'
  | 'payout'
  | 'transfer_paid'
  | 'transfer_returned'
  | 'channel_seen'
  | 'channel_adopted'
  | 'channel_settled'

export type LedgerBody = SaleDetails & {
  readonly kind: LedgerKind
  /** The id of the payment, or of the transfer. */
  readonly payment_id: string
  /** Names the settled payment for ever: network, asset, payer and nonce; of a transfer, its id. */
  readonly identity: string
  readonly postings: readonly Posting[]
  readonly [field: string]: unknown
}

export type Booking = { readonly entry: AppliedEntry; readonly body: LedgerBody }
