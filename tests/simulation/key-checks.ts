import { createHash } from 'node:crypto'
import { hashRequest } from '@tollbase/verify/receipt'
import type { Body, Books } from './books.ts'
import type { Agent, Errand } from './errands.ts'
import type { Market } from './market.ts'
import { toRequestParts } from './send-request.ts'

/**
 * Checks that no key spent more than its limits allow, in one payment, on a day, or ever, its successors included;
 * and that each errand was charged once, by a price that was in force, for the answer that it got.
 */
export function checkAgents(market: Market, agents: readonly Agent[], books: Books): string[] {
  return agents.flatMap((agent) => {
    const charged = agent.errands.flatMap((errand) => {
      const sale = findSale(books, agent, errand)
      return sale === undefined ? [] : [{ errand, charge: BigInt(sale.amount), sale }]
    })
    const days = new Map<string, bigint>()
    for (const { errand, charge } of charged) {
      const day = formatDay(errand.beganMs)
      // One that was under way at midnight counts on either day.
      if (day === formatDay(errand.triedMs)) days.set(day, (days.get(day) ?? 0n) + charge)
    }
    const all = charged.reduce((sum, { charge }) => sum + charge, 0n)
    const { name, lifetime, daily, perPayment } = agent
    return [
      ...(all > lifetime ? [`${name} spent ${all}, and ${lifetime} was allowed`] : []),
      ...[...days].flatMap(([day, one]) =>
        one > daily ? [`${name} spent ${one} on ${day}, and ${daily} was allowed`] : [],
      ),
      ...charged.flatMap(({ errand, charge, sale }) => [
        ...(charge > perPayment
          ? [`${errand.name} cost ${charge}, and ${perPayment} was allowed`]
          : []),
        ...checkCharge(market, errand, sale),
      ]),
      ...agent.errands.flatMap((errand) => checkDelivered(books, agent, errand)),
    ]
  })
}

/** Data and money are there together, unless the agent has no key any more to fetch what it bought. */
function checkDelivered(books: Books, agent: Agent, errand: Errand): string[] {
  const isSold = findSale(books, agent, errand) !== undefined
  const { name, delivered } = errand
  if (delivered !== undefined && !isSold) return [`${name} was delivered and never charged`]
  const isLost = delivered === undefined && isSold && !agent.isChanging
  return isLost ? [`${name} was charged and never delivered`] : []
}

/** Lists what was sold to the keys of these agents, delivered or not. */
export function listSold(agents: readonly Agent[], books: Books): Set<string> {
  const sold = agents.flatMap((agent) =>
    agent.errands.flatMap((errand) => findSale(books, agent, errand)?.payment_id ?? []),
  )
  return new Set(sold)
}

/**
 * Finds the sale of an errand: that of its answer; or, where no answer came, one of this budget for this very request
 * that was delivered to nobody.
 */
function findSale(books: Books, agent: Agent, errand: Errand): Body | undefined {
  const { delivered } = errand
  if (delivered !== undefined) return books.sales.get(delivered.paymentId)
  const request = hashRequest(toRequestParts(errand.asked))
  const others = new Set(agent.errands.flatMap((one) => one.delivered?.paymentId ?? []))
  return [...books.sales.values()].find(
    ({ budget, request_hash, payment_id }) =>
      budget === agent.budget && request_hash === request && !others.has(payment_id),
  )
}

function checkCharge(
  market: Market,
  { name, step, delivered, rows }: Errand,
  sale: Body,
): string[] {
  const charge = BigInt(sale.amount)
  const count = BigInt(sale.row_count)
  const prices = market.prices.since(step).map((price) => price * count)
  const hash = createHash('sha256')
    .update(delivered?.text ?? '')
    .digest('hex')
  return [
    ...(count > BigInt(rows) ? [`${name} was charged for ${count} rows of ${rows}`] : []),
    ...(prices.includes(charge)
      ? []
      : [`${name} was charged ${charge} for ${count}, by a price that was not in force`]),
    ...(delivered === undefined || sale.result_hash === hash
      ? []
      : [`${name} was charged for another answer than it got`]),
  ]
}

function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
