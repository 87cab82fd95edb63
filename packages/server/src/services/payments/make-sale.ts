import { hash } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import type { ReceiptFacts } from '@tollbase/verify/receipt'
import type { MeasuredPart, SaleDetails, SoldItem, SoldPart } from '@tollbase/verify/sale-details'
import { assert, requirePresent } from '../../base/assert.ts'
import { chooseLarger, chooseSmaller } from '../../base/bigint.ts'
import type { World } from '../../base/world.ts'
import type { Budget } from '../../model/spending-limits.ts'
import {
  listPostings,
  type Posting,
  platformAccount,
  toApplicationAccount,
  toPayerAccount,
} from '../../projections/ledger-entry.ts'
import type { PaymentNetwork } from '../../x402/networks.ts'
import { type Claim, getBuyerAccount } from './claims/claim-store.ts'
import { joinSources, type KeptReply, type ReplyToKeep } from './claims/reply-store.ts'
import type { MeteredSale } from './meters/meter.ts'
import type { PaymentPorts, Split } from './payment-ports.ts'
import type { Delivery, FundedClaim, Payee, Purchase, Terms } from './purchase.ts'
import { decodeSoldFile, soldFileType } from './replies/sold-file.ts'

/**
 * The body of a sale: what its receipt tells, and what only the ledger and the audit need. `claim_hash` and `answer_hash`
 * say what is kept of it outside the log; sales from before they were made lack them.
 */
export type SaleBody = ReceiptFacts &
  SaleDetails & {
    readonly kind: 'sale'
    readonly identity: string
    readonly postings: readonly Posting[]
    readonly claim_hash?: string
    readonly answer_hash?: string
  }

/** The payment behind a sale, and the network that its amounts are of. */
export type NetworkPayment = Pick<Purchase, 'payment' | 'channel' | 'paidTo'> & {
  readonly network: PaymentNetwork
}

/** A payment behind a sale, with the terms that it was made under. */
export type SalePayment = NetworkPayment & {
  readonly terms: Terms
  readonly pass?: Purchase['offer']['pass'] | undefined
}

/** Takes the part of a purchase that its sale tells of. */
export function toSalePayment({
  payment,
  requirement,
  terms,
  offer,
  channel,
  paidTo,
}: Purchase): SalePayment {
  return {
    ...{ payment, network: requirement.network, terms, pass: offer.pass },
    ...(channel && { channel }),
    ...(paidTo !== undefined && { paidTo }),
  }
}

/** Makes the reply that a delivery is, with the entry that charges what is due for it. */
export function makeKeptReply(
  { world, split }: Pick<PaymentPorts, 'world' | 'split'>,
  sale: {
    readonly by: SalePayment
    readonly funded: Pick<FundedClaim, 'claim' | 'transaction'>
    readonly delivery: Delivery
  },
  { due, uses }: MeteredSale,
): KeptReply {
  const { by, funded, delivery } = sale
  const { pass, channel, terms } = by
  const facts = makeReceiptFacts(by, funded, { ...delivery, due, nowMs: world.now() })
  const parts = listParts(due, terms.payees)
  const { identity } = funded.claim
  const kept = { claim_hash: hashClaim(funded.claim), answer_hash: hashAnswer(delivery) }
  const entry = makeSaleEntry({
    ...{ identity, facts, kept, split, parts, budget: terms.budget, uses, pass },
    measured: listMeasured(delivery, due, terms.payees),
    voucher: channel?.voucher,
    buyer: getBuyerAccount(funded.claim),
  })
  return {
    status: delivery.status,
    body: delivery.body,
    contentType: delivery.contentType ?? null,
    sale: entry.body,
    sources: delivery.sources ?? [],
  }
}

/** Makes what is kept of a reply, for money that came by this transaction, or, where it is null, for what is held. */
export function toReplyToKeep(
  world: World,
  { transaction }: Pick<FundedClaim, 'transaction'>,
  reply: KeptReply,
): ReplyToKeep {
  const expiresAtMs = world.now() + limits.keptReplySeconds * 1000
  return { ...reply, settledBy: transaction, expiresAtMs }
}

/** Stands in the entry of a sale for the transaction of a payment whose money is yet to be asked for. */
const unknownTransaction = ''

/** Makes what is kept of an answer before its money is asked for; of one that costs nothing, none is. */
export function makeReplyBeforeMoney(
  ports: Pick<PaymentPorts, 'world' | 'split'>,
  purchase: Purchase,
  {
    claim,
    delivery,
    ...sale
  }: { readonly claim: Claim; readonly delivery: Delivery } & MeteredSale,
): ReplyToKeep {
  const funded = { claim, transaction: claim.state === 'ready' ? unknownTransaction : null }
  const reply = makeKeptReply(ports, { by: toSalePayment(purchase), funded, delivery }, sale)
  return toReplyToKeep(ports.world, { transaction: null }, reply)
}

/** Names the transaction in the entry of a sale that was made before anybody knew it. */
export function fillTransaction({ claim, transaction }: FundedClaim, kept: KeptReply): KeptReply {
  if (claim.state !== 'ready') return kept
  const body: Readonly<Record<string, unknown>> = JSON.parse(kept.sale)
  const named = requirePresent(transaction, 'the transaction of money that came')
  return { ...kept, sale: JSON.stringify({ ...body, transaction: named }) }
}

/** Makes the facts of a receipt: what was paid, for which request, and what was delivered for it. */
export function makeReceiptFacts(
  { payment, network, channel, paidTo }: NetworkPayment,
  { claim, transaction }: Pick<FundedClaim, 'claim' | 'transaction'>,
  delivery: Delivery & { due: readonly bigint[]; nowMs: number },
): ReceiptFacts {
  const charge = delivery.due.reduce((sum, amount) => sum + amount, 0n)
  const isFromBalance = transaction === null
  // An error costs nothing: its money is the payer's balance, as all that is not charged.
  assert(charge <= claim.cap, 'no charge is above its quote')
  return {
    payment_id: claim.id,
    request_hash: claim.request_hash,
    quote_hash: claim.quote_id && hashSha256(claim.quote_id),
    payer: channel?.payer ?? payment.payload.from,
    payee: `app:${claim.app}`,
    amount: String(charge),
    deposited: String(isFromBalance ? 0n : claim.amount),
    change: String(isFromBalance ? 0n : claim.amount - charge),
    asset: network.asset.address,
    network: network.id,
    transaction,
    ...(isFromBalance && { paid_from: channel ? 'channel' : 'balance' }),
    ...(!isFromBalance && paidTo !== undefined && { paid_to: paidTo }),
    app: claim.app,
    operation: claim.operation,
    as_of: delivery.asOf,
    row_count: delivery.rows,
    result_hash: hashResult(delivery),
    delivered_at: new Date(delivery.nowMs).toISOString(),
  }
}

/** Lists the parts of a charge, each with its owner and what it is paid for. */
export function listParts(due: readonly bigint[], payees: readonly Payee[]): readonly Part[] {
  return payees.map(({ account, platformBasisPoints, item }, at) => ({
    amount: due[at] ?? 0n,
    platformBasisPoints: BigInt(platformBasisPoints),
    account,
    item,
  }))
}

/** Lists the use of each part that has a price; undefined where the delivery does not say. */
function listMeasured(
  { measured }: Delivery,
  due: readonly bigint[],
  payees: readonly Payee[],
): readonly MeasuredPart[] | undefined {
  return measured?.flatMap((use, at) => {
    const { account = '', item } = payees[at] ?? {}
    if (use === undefined || item === undefined) return []
    return [{ account, kind: item.kind, name: item.name, ...use, charged: String(due[at] ?? 0n) }]
  })
}

/** Hashes what never changes of a claim that is sold, and stands in no entry; the audit computes the same by SQL. */
function hashClaim({ terms, payment, transfer, created_at_ms: createdAtMs }: Claim): string {
  return hashSha256([terms ?? '', payment, transfer ?? '', String(createdAtMs)].join('\n'))
}

/** Hashes what is kept of an answer beside its body; the audit computes the same by SQL. */
function hashAnswer({ status, contentType, sources = [] }: Delivery): string {
  return hashSha256([String(status), contentType ?? '', joinSources({ sources })].join('\n'))
}

function hashSha256(content: string | Buffer): string {
  return hash('sha256', content)
}

/** A file's hash is its name; every other answer is hashed as it goes out. */
function hashResult({ body, contentType }: Delivery): string {
  return contentType === soldFileType ? decodeSoldFile(body).sha256 : hashSha256(body)
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
  /** Hashes by which the audit judges what is kept outside the log: the claim, and the answer beside its body. */
  kept?: Pick<SaleBody, 'claim_hash' | 'answer_hash'>
  split: Split
  parts?: readonly Part[]
  measured?: SaleDetails['measured'] | undefined
  budget?: Budget | undefined
  uses?: SaleDetails['uses'] | undefined
  pass?: SaleDetails['pass'] | undefined
  voucher?: SaleDetails['channel'] | undefined
  /** The account that its discounts count for; that of the payer where none is given. */
  buyer?: string
}) {
  const { facts, identity, kept, split, parts = [], measured, budget, uses, pass, voucher } = sale
  const wallet = toPayerAccount(facts.payer)
  const payer = voucher === undefined ? wallet : `channel:${voucher.id}`
  const { buyer = wallet } = sale
  const charge = BigInt(facts.amount)
  const seller = toApplicationAccount(facts.app)
  const { credits, sold } = shareOut({ charge, seller, split, parts })
  const body: SaleBody = {
    kind: 'sale',
    identity,
    ...facts,
    ...kept,
    ...(budget && { budget: budget.id, budget_day: budget.day }),
    ...(uses && { uses }),
    ...(pass && { pass }),
    ...(voucher && { channel: voucher }),
    ...(buyer !== wallet && { buyer }),
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

/** Computes what the platform gets of a charge. */
export function computeShare(shared: Shared): bigint {
  return shareOut(shared).credits.get(platformAccount) ?? 0n
}

/** Sums what the platform got by a sale. */
export function sumShare(postings: readonly Pick<Posting, 'account' | 'amount'>[]): bigint {
  return postings
    .filter(({ account }) => account === platformAccount)
    .reduce((sum, { amount }) => sum + BigInt(amount), 0n)
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
    const gross = chooseSmaller(amount, rest)
    const platform = (gross * chooseLarger(least, split.platformBasisPoints)) / 10_000n
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
