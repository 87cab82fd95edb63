import { type HeldPayment, toHeldAccount } from '../../projections/held-payments.ts'
import type { LedgerBody, Posting } from '../../projections/ledger-body.ts'

export const toWalletAccount = (address: string) => `wallet:${address}`
export const toApplicationAccount = (appId: string) => `app:${appId}`
/** The account that a payer is charged on: a wallet's, an application's whose key pays, or a channel's. */
export const toPayerAccount = (payer: string) =>
  /^(app|channel):/.test(payer) ? payer : toWalletAccount(payer)
export const platformAccount = 'platform'
/** The account of what reversals took from no balance, as a debt: never positive. */
export const lossesAccount = 'losses'

/** The entry that books a settled payment as a balance, or holds it for that. */
export function makeDepositEntry(deposit: {
  paymentId: string
  identity: string
  payer: string
  account?: string
  isHeld?: boolean
  amount: bigint
  network: string
  asset: string
  transaction: string
}) {
  const { paymentId, identity, payer, amount, network, asset, transaction } = deposit
  const { account = toWalletAccount(payer), isHeld = false } = deposit
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
      [isHeld ? toHeldAccount(account, paymentId) : account, amount],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

/** Makes the entry that puts the held money of a payment on the account that it is held for. */
export function makeReleaseEntry({ payment_id, identity, held_on, account, amount }: HeldPayment) {
  const body: LedgerBody = {
    kind: 'release',
    payment_id,
    identity,
    amount,
    postings: listPostings([
      [held_on, -BigInt(amount)],
      [account, BigInt(amount)],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

/** Makes the entry that takes back what a chain does not have any more; what no account gives is lost. */
export function makeReversalEntry(reversal: {
  paymentId: string
  identity: string
  network: string
  /** Atomic units. */
  amount: bigint
  moved: bigint
  lost: bigint
  reason: string
  amounts: readonly (readonly [string, bigint])[]
}) {
  const { paymentId, identity, network, amount, moved, lost, reason, amounts } = reversal
  const body: LedgerBody = {
    kind: 'reversal',
    payment_id: paymentId,
    identity,
    network,
    amount: String(amount),
    moved: String(moved),
    lost: String(lost),
    reason,
    postings: listPostings([...amounts, [lossesAccount, -lost]]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

/** Makes the entry that takes a fee for storage from the balance of its application, as far as that has it. */
export function makeStorageFeeEntry(fee: {
  id: string
  app: string
  day: string
  bytes: bigint
  price: bigint
  amount: bigint
  due: bigint
  paid: bigint
  carried: bigint
}) {
  const { id, app, day, bytes, price, amount, due, paid, carried } = fee
  const body: LedgerBody = {
    kind: 'storage_fee',
    payment_id: id,
    identity: id,
    ...{ app, day, bytes: String(bytes), price: String(price) },
    ...{ amount: String(amount), paid: String(paid) },
    ...{ owed: String(due - paid), carried: String(carried) },
    postings: listPostings([
      [toApplicationAccount(app), -paid],
      [platformAccount, paid],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

/** Lists the postings of these amounts; an account that gets nothing has none. */
export function listPostings(amounts: readonly (readonly [string, bigint])[]): Posting[] {
  return amounts
    .filter(([, amount]) => amount !== 0n)
    .map(([account, amount]) => ({ account, amount: String(amount) }))
}
