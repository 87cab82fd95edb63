import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../../base/assert.ts'
import type { World } from '../../../base/world.ts'
import type { Claim } from '../claims/claim-store.ts'
import type { Keeping, KeptReply } from '../claims/reply-store.ts'
import { makeSaleEntry } from '../ledger-entries.ts'
import type { MeteredSale } from '../meters/meter.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import type { FundedClaim, Purchase } from '../purchase.ts'
import type { Delivery } from '../quotes/offer.ts'
import type { Terms } from '../quotes/terms.ts'
import { listMeasured, listParts, makeReceiptFacts, type PaidBy } from './make-receipt-facts.ts'

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
