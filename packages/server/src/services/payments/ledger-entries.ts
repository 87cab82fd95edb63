import type { ReceiptFacts } from '@tollbase/verify/receipt'
import type { LedgerBody, Posting } from '../../projections/ledger-rules.ts'

/** Basis points of a charge that the platform keeps; the rest is the seller's. */
export type Split = { readonly platformBasisPoints: bigint }

export const toWalletAccount = (address: string) => `wallet:${address}`
export const toApplicationAccount = (appId: string) => `app:${appId}`
export const platformAccount = 'platform'

/** The entry that books a settled payment as the payer's balance. */
export function makeDepositEntry(deposit: {
  paymentId: string
  identity: string
  payer: string
  amount: bigint
  network: string
  asset: string
  transaction: string
}) {
  const { paymentId, identity, payer, amount, network, asset, transaction } = deposit
  const body: LedgerBody = {
    kind: 'deposit',
    payment_id: paymentId,
    identity,
    payer,
    amount: String(amount),
    network,
    asset,
    transaction,
    postings: listPostings([
      [`outside:${network}`, -amount],
      [toWalletAccount(payer), amount],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

/** A part of a charge that is shared out in its own way. */
export type Share = {
  readonly amount: bigint
  /** The least share of this part that the platform gets. */
  readonly platformBasisPoints: bigint
  /** The account that gets the rest. */
  readonly account: string
}

/**
 * Makes the entry that charges the payer and shares the charge out: first the parts with shares of their own, as
 * far as the charge goes, then the rest, which is the seller's. The platform's share of each is rounded down.
 */
export function makeSaleEntry(sale: {
  identity: string
  facts: ReceiptFacts
  split: Split
  shares?: readonly Share[]
}) {
  const { facts, identity, split } = sale
  const charge = BigInt(facts.amount)
  const seller = toApplicationAccount(facts.app)
  const credits = new Map<string, bigint>([[seller, 0n]])
  const credit = (account: string, amount: bigint) =>
    credits.set(account, (credits.get(account) ?? 0n) + amount)
  let rest = charge
  for (const { amount, platformBasisPoints: least, account } of sale.shares ?? []) {
    const part = amount < rest ? amount : rest
    const platform = (part * raiseToLeast(least, split.platformBasisPoints)) / 10_000n
    credit(account, part - platform)
    credit(platformAccount, platform)
    rest -= part
  }
  const platform = (rest * split.platformBasisPoints) / 10_000n
  credit(seller, rest - platform)
  credit(platformAccount, platform)
  const body: LedgerBody = {
    kind: 'sale',
    identity,
    ...facts,
    postings: listPostings([[toWalletAccount(facts.payer), -charge], ...credits]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

function raiseToLeast(amount: bigint, least: bigint): bigint {
  if (amount < least) return least
  return amount
}

function listPostings(amounts: readonly (readonly [string, bigint])[]): Posting[] {
  return amounts
    .filter(([, amount]) => amount !== 0n)
    .map(([account, amount]) => ({ account, amount: String(amount) }))
}
