import type { Posting } from '../../projections/ledger-body.ts'

export const toWalletAccount = (address: string) => `wallet:${address}`
export const toApplicationAccount = (appId: string) => `app:${appId}`
/** The account that a payer is charged on: a wallet's, an application's whose key pays, or a channel's. */
export const toPayerAccount = (payer: string) =>
  /^(app|channel):/.test(payer) ? payer : toWalletAccount(payer)
export const platformAccount = 'platform'
/** The account of what reversals took from no balance, as a debt: never positive. */
export const lossesAccount = 'losses'

/** Lists the postings of these amounts; an account that gets nothing has none. */
export function listPostings(amounts: readonly (readonly [string, bigint])[]): Posting[] {
  return amounts
    .filter(([, amount]) => amount !== 0n)
    .map(([account, amount]) => ({ account, amount: String(amount) }))
}
