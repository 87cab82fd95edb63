import type { KeptReply } from '../claims/reply-store.ts'
import { makeSaleEntry } from '../ledger-entries.ts'
import type { MeteredSale } from '../meters/meter.ts'
import type { FundedClaim, PaymentPorts, Purchase } from '../purchase.ts'
import type { Delivery } from '../quotes/offer.ts'
import type { Terms } from '../quotes/terms.ts'
import { listMeasured, listParts, makeReceiptFacts, type PaidBy } from './make-receipt-facts.ts'

/** A payment behind a sale, with the terms that it was made under. */
export type SoldBy = PaidBy & {
  readonly terms: Terms
  readonly pass?: Purchase['offer']['pass'] | undefined
}

/** Takes the part of a purchase that its sale tells of. */
export function toSoldBy({ payment, requirement, terms, offer, channel }: Purchase): SoldBy {
  const by = { payment, network: requirement.network, terms, pass: offer.pass }
  return channel === undefined ? by : { ...by, channel }
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
  }
}
