import type { ReceiptFacts } from '@tollbase/verify/receipt'
import type { LedgerBody, Posting } from '../ledger/ledger.ts'

/** Basis points of a charge that the platform keeps; the rest is the seller's. */
export type Split = { readonly platformBasisPoints: bigint }

export const wallet = (address: string) => `wallet:${address}`
export const applicationAccount = (appId: string) => `app:${appId}`
export const platformAccount = 'platform'

/** The entry that books a settled payment as the payer's balance. */
export function depositEntry(deposit: {
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
    postings: lines([
      [`outside:${network}`, -amount],
      [wallet(payer), amount],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

/** The entry that charges the payer and shares the charge out. The platform's share is rounded down. */
export function saleEntry(sale: { identity: string; facts: ReceiptFacts; split: Split }) {
  const { facts, identity } = sale
  const charge = BigInt(facts.amount)
  const platform = (charge * sale.split.platformBasisPoints) / 10_000n
  const body: LedgerBody = {
    kind: 'sale',
    identity,
    ...facts,
    postings: lines([
      [wallet(facts.payer), -charge],
      [applicationAccount(facts.app), charge - platform],
      [platformAccount, platform],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

function lines(amounts: readonly (readonly [string, bigint])[]): Posting[] {
  return amounts
    .filter(([, amount]) => amount !== 0n)
    .map(([account, amount]) => ({ account, amount: String(amount) }))
}
