import {
  type LedgerBody,
  listPostings,
  toApplicationAccount,
  toPayerAccount,
} from '../../../projections/ledger-entry.ts'

/** Makes the entry that gives a part of a sale's charge back, from its seller's balance to its payer's. */
export function makeRefundEntry(refund: {
  id: string
  paymentId: string
  app: string
  payer: string
  amount: bigint
  network: string
}) {
  const { id, paymentId, app, payer, amount, network } = refund
  const body: LedgerBody = {
    kind: 'refund',
    payment_id: id,
    identity: id,
    sale: paymentId,
    app,
    payer,
    amount: String(amount),
    network,
    postings: listPostings([
      [toApplicationAccount(app), -amount],
      [toPayerAccount(payer), amount],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}
