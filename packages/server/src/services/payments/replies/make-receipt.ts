import { createHash } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import type { ReceiptFacts } from '@tollbase/verify/receipt'
import { assert, requirePresent } from '../../../base/assert.ts'
import type { World } from '../../../base/world.ts'
import type { MeasuredPart } from '../../../model/measured-use.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import type { Claim } from '../claims/claim-store.ts'
import type { Keeping, KeptReply } from '../claims/reply-store.ts'
import type { Part } from '../ledger-entries.ts'
import { makeSaleEntry } from '../ledger-entries.ts'
import type { MeteredSale } from '../meters/meter.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { Delivery, FundedClaim, Payee, Purchase, Terms } from '../purchase.ts'
import { decodeSoldFile, soldFileType } from './sold-file.ts'

/** The payment behind a sale, and the network that its amounts are of. */
export type PaidBy = Pick<Purchase, 'payment' | 'channel' | 'paidTo'> & {
  readonly network: PaymentNetwork
}

/** A payment behind a sale, with the terms that it was made under. */
export type SoldBy = PaidBy & {
  readonly terms: Terms
  readonly pass?: Purchase['offer']['pass'] | undefined
}

/** Takes the part of a purchase that its sale tells of. */
export function toSoldBy({
  payment,
  requirement,
  terms,
  offer,
  channel,
  paidTo,
}: Purchase): SoldBy {
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
    readonly by: SoldBy
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
  const entry = makeSaleEntry({
    ...{ identity, facts, split, parts, budget: terms.budget, uses, pass },
    measured: listMeasured(delivery, due, terms.payees),
    voucher: channel?.voucher,
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
export function toKeeping(
  world: World,
  { transaction }: Pick<FundedClaim, 'transaction'>,
  reply: KeptReply,
): Keeping {
  const expiresAtMs = world.now() + limits.keptReplySeconds * 1000
  return { ...reply, settledBy: transaction, expiresAtMs }
}

/** Stands in the entry of a sale for the transaction of a payment whose money is yet to be asked for. */
const unknownTransaction = ''

/** Makes what is kept of an answer before its money is asked for. */
export function keepBefore(
  ports: Pick<PaymentPorts, 'world' | 'split'>,
  purchase: Purchase,
  { claim, delivery, due }: { readonly claim: Claim; readonly delivery: Delivery } & MeteredSale,
): Keeping {
  const funded = { claim, transaction: unknownTransaction }
  const reply = makeKeptReply(ports, { by: toSoldBy(purchase), funded, delivery }, { due })
  return toKeeping(ports.world, { transaction: null }, reply)
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
  { payment, network, channel, paidTo }: PaidBy,
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

function hashSha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** A file's hash is its name; every other answer is hashed as it goes out. */
function hashResult({ body, contentType }: Delivery): string {
  return contentType === soldFileType ? decodeSoldFile(body).sha256 : hashSha256(body)
}
