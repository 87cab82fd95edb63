import type { ReceiptFacts } from '@tollbase/verify/receipt'
import type { MeasuredPart } from '../../model/measured-use.ts'
import type { Budget } from '../../model/spending-limits.ts'
import type { SaleVoucher } from '../../projections/channel-books.ts'
import type { LedgerBody, Posting } from '../../projections/ledger-body.ts'
import type { SoldPass, SoldUse } from '../../projections/metered-use.ts'
import type { SoldItem, SoldPart } from '../../projections/sales.ts'

/** Basis points of a charge that the platform keeps; the rest is the seller's. */
export type Split = { readonly platformBasisPoints: bigint }

export const toWalletAccount = (address: string) => `wallet:${address}`
export const toApplicationAccount = (appId: string) => `app:${appId}`
/** The account that a payer is charged on: a wallet's, an application's whose key pays, or a channel's. */
export const toPayerAccount = (payer: string) =>
  /^(app|channel):/.test(payer) ? payer : toWalletAccount(payer)
export const platformAccount = 'platform'

/** The entry that books a settled payment as a balance: the payer's, where no other account is named. */
export function makeDepositEntry(deposit: {
  paymentId: string
  identity: string
  payer: string
  account?: string
  amount: bigint
  network: string
  asset: string
  transaction: string
}) {
  const { paymentId, identity, payer, amount, network, asset, transaction } = deposit
  const { account = toWalletAccount(payer) } = deposit
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
      [account, amount],
    ]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

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

/** A part of a charge: what it is paid for, and who gets it. */
export type Part = {
  readonly amount: bigint
  /** The least share of this part that the platform gets. */
  readonly platformBasisPoints: bigint
  /** The account that gets the rest. */
  readonly account: string
  readonly item: SoldItem | undefined
}

/**
 * Makes the entry that charges the payer and shares the charge out: first the parts of others and those with shares
 * of their own, as far as the charge goes, then the rest, which is the seller's. The platform's share of each is
 * rounded down, and of the seller's own parts together.
 */
export function makeSaleEntry(sale: {
  identity: string
  facts: ReceiptFacts
  split: Split
  parts?: readonly Part[]
  measured?: readonly MeasuredPart[] | undefined
  budget?: Budget | undefined
  uses?: readonly SoldUse[] | undefined
  pass?: SoldPass | undefined
  voucher?: SaleVoucher | undefined
}) {
  const { facts, identity, split, parts = [], measured, budget, uses, pass, voucher } = sale
  const payer = voucher === undefined ? toPayerAccount(facts.payer) : `channel:${voucher.id}`
  const charge = BigInt(facts.amount)
  const seller = toApplicationAccount(facts.app)
  const { credits, sold } = shareOut({ charge, seller, split, parts })
  const body: LedgerBody = {
    kind: 'sale',
    identity,
    ...facts,
    ...(budget && { budget: budget.id, budget_day: budget.day }),
    ...(uses && { uses }),
    ...(pass && { pass }),
    ...(voucher && { channel: voucher }),
    sold,
    ...(measured && { measured }),
    postings: [
      ...listPostings([[payer, -charge], ...credits]),
      ...(facts.paid_to === undefined ? [] : listDirectPostings(facts, seller)),
    ],
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}

/** The money is in the seller's own wallet: what its balance was credited with goes off it again, as a payout would. */
function listDirectPostings({ amount, network }: ReceiptFacts, seller: string): Posting[] {
  return [
    { account: seller, amount: `-${amount}`, kind: 'direct' },
    { account: `outside:${network}`, amount, kind: 'direct' },
  ]
}

/** A charge with its parts, and who sells it. */
type Shared = {
  readonly charge: bigint
  /** The account of the application that the payment is made to. */
  readonly seller: string
  readonly split: Split
  readonly parts: readonly Part[]
}

/** Computes the part of a charge that is not the seller's. */
export function computeFee(shared: Shared): bigint {
  return shared.charge - (shareOut(shared).credits.get(shared.seller) ?? 0n)
}

function shareOut({ charge, seller, split, parts }: Shared): {
  readonly credits: ReadonlyMap<string, bigint>
  readonly sold: readonly SoldPart[]
} {
  const credits = new Map<string, bigint>([[seller, 0n]])
  const credit = (account: string, amount: bigint) =>
    credits.set(account, (credits.get(account) ?? 0n) + amount)
  const sold: SoldPart[] = []
  const [own, shared] = splitParts(parts, seller)
  let rest = charge
  for (const { amount, platformBasisPoints: least, account, item } of shared) {
    const gross = lowerToMost(amount, rest)
    const platform = (gross * raiseToLeast(least, split.platformBasisPoints)) / 10_000n
    credit(account, gross - platform)
    credit(platformAccount, platform)
    rest -= gross
    if (gross > 0n) sold.push(makeSoldPart(item ?? unknownItem, { account, gross, platform }))
  }
  const platform = (rest * split.platformBasisPoints) / 10_000n
  credit(seller, rest - platform)
  credit(platformAccount, platform)
  const ownSold = splitOwn(own, { account: seller, gross: rest, platform })
  return { credits, sold: [...ownSold, ...sold] }
}

type Shares = { readonly account: string; readonly gross: bigint; readonly platform: bigint }

/** Terms from before items were noted do not say what was sold. */
const unknownItem: SoldItem = { kind: 'other', name: '' }

function makeSoldPart(item: SoldItem, { account, gross, platform }: Shares): SoldPart {
  return { ...item, account, gross: String(gross), fee: String(platform) }
}

function splitParts(parts: readonly Part[], seller: string): [Part[], Part[]] {
  const isOwn = ({ account, platformBasisPoints: least }: Part) =>
    account === seller && least === 0n
  return [parts.filter(isOwn), parts.filter((part) => !isOwn(part))]
}

/**
 * Splits what the seller's own parts earned together: each gets the platform's share of all up to it, less that of
 * those before, so the shares add up exactly. A sale for nothing has one part.
 */
function splitOwn(own: readonly Part[], { account, gross, platform }: Shares): SoldPart[] {
  const paid = own.filter(({ amount }) => amount > 0n)
  const parts = paid.length > 0 ? paid : own.slice(0, 1)
  // The platform alone sold it.
  if (parts.length === 0 && gross === 0n) return []
  const items = parts.length > 0 ? parts : [{ amount: gross, item: undefined }]
  let before = { gross: 0n, platform: 0n }
  return items.map(({ amount, item }, at) => {
    const isLast = at === items.length - 1
    const upTo = isLast || before.gross + amount > gross ? gross : before.gross + amount
    const share = isLast || gross === 0n ? platform : (upTo * platform) / gross
    const part = { account, gross: upTo - before.gross, platform: share - before.platform }
    before = { gross: upTo, platform: share }
    return makeSoldPart(item ?? unknownItem, part)
  })
}

function lowerToMost(amount: bigint, most: bigint): bigint {
  if (amount > most) return most
  return amount
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
