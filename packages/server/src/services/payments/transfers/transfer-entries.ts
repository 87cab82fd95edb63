import type { LedgerBody, LedgerKind } from '../../../projections/ledger-body.ts'
import type { OutgoingTransfer } from './transfer-store.ts'

type Entry = { readonly header: { readonly type: 'ledger' }; readonly body: string }

/** Makes the entry that takes a transfer's money from its account: it is on its way out. */
export function makeStartEntry(one: OutgoingTransfer): Entry {
  const { kind, account, valid_before } = one
  const facts = { valid_before: String(valid_before) }
  return makeEntry(one, { kind, from: account, to: toTransitAccount(one), facts })
}

/** Makes the entry that says that the chain has moved it. */
export function makePaidEntry(one: OutgoingTransfer, transaction: string): Entry {
  const step = { kind: 'transfer_paid', from: toTransitAccount(one) } as const
  return makeEntry(one, { ...step, to: `outside:${one.network}`, facts: { transaction } })
}

/** Makes the entry that gives the money back to its account: no block will ever take the transfer. */
export function makeReturnedEntry(one: OutgoingTransfer, reason: string): Entry {
  const step = { kind: 'transfer_returned', from: toTransitAccount(one) } as const
  return makeEntry(one, { ...step, to: one.account, facts: { reason } })
}

type Step = {
  readonly kind: LedgerKind
  readonly from: string
  readonly to: string
  readonly facts?: Readonly<Record<string, string>>
}

function makeEntry(
  { id, amount, network, recipient }: OutgoingTransfer,
  { kind, from, to, facts = {} }: Step,
): Entry {
  const body: LedgerBody = {
    kind,
    payment_id: id,
    identity: id,
    amount: String(amount),
    network,
    recipient,
    ...facts,
    postings: [
      { account: from, amount: String(-amount) },
      { account: to, amount: String(amount) },
    ],
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

function toTransitAccount({ network }: OutgoingTransfer): string {
  return `transit:${network}`
}
