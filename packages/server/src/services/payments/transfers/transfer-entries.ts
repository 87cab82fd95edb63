import {
  type LedgerBody,
  type LedgerKind,
  type Posting,
  platformAccount,
} from '../../../projections/ledger-entry.ts'
import type { OutgoingTransfer } from './transfer-store.ts'

type Entry = { readonly header: { readonly type: 'ledger' }; readonly body: string }

/** Makes the entry that takes a transfer's money and its fee from its account: they are on their way out. */
export function makeStartEntry(one: OutgoingTransfer): Entry {
  const { kind, account, amount, fee, valid_before } = one
  const postings: Posting[] = [
    { account, amount: String(-amount) },
    ...(fee > 0n ? [{ account, amount: String(-fee), kind: 'withdrawal_fee' } as const] : []),
    { account: toTransitAccount(one), amount: String(amount + fee) },
  ]
  return makeEntry(one, { kind, facts: { valid_before: String(valid_before) }, postings })
}

/** Makes the entry that says that the chain has moved it; the operator has earned the fee. */
export function makePaidEntry(one: OutgoingTransfer, transaction: string): Entry {
  const { network, amount, fee } = one
  const postings: Posting[] = [
    { account: toTransitAccount(one), amount: String(-amount - fee) },
    { account: `outside:${network}`, amount: String(amount) },
    ...(fee > 0n
      ? [{ account: platformAccount, amount: String(fee), kind: 'withdrawal_fee' } as const]
      : []),
  ]
  return makeEntry(one, { kind: 'transfer_paid', facts: { transaction }, postings })
}

/** Makes the entry that gives the money and the fee back to its account: no block will ever take the transfer. */
export function makeReturnedEntry(one: OutgoingTransfer, reason: string): Entry {
  const { account, amount, fee } = one
  const postings: Posting[] = [
    { account: toTransitAccount(one), amount: String(-amount - fee) },
    { account, amount: String(amount + fee) },
  ]
  return makeEntry(one, { kind: 'transfer_returned', facts: { reason }, postings })
}

type Step = {
  readonly kind: LedgerKind
  readonly facts: Readonly<Record<string, string>>
  readonly postings: readonly Posting[]
}

function makeEntry(
  { id, amount, fee, network, recipient }: OutgoingTransfer,
  { kind, facts, postings }: Step,
): Entry {
  const body: LedgerBody = {
    kind,
    payment_id: id,
    identity: id,
    amount: String(amount),
    ...(fee > 0n && { fee: String(fee) }),
    network,
    recipient,
    ...facts,
    postings,
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

function toTransitAccount({ network }: OutgoingTransfer): string {
  return `transit:${network}`
}
