import { createHash } from 'node:crypto'
import { hashRequest } from '@tollbase/verify/receipt'
import type { Body, Books } from './books.ts'
import type { Market } from './market.ts'
import { toRequestParts } from './send-request.ts'
import { newsPrice } from './shop.ts'
import type { SignInOrder } from './sign-in-order.ts'

/** The orders of sales by sign-ins, by the ids of their payments, and what is wrong with these. */
export type MatchedSignIns = {
  readonly orders: ReadonlyMap<string, SignInOrder>
  readonly problems: readonly string[]
}

/**
 * Finds the order of each sale by a sign-in: that of its answer; or, where no answer came, one of the same wallet for this
 * very request, which was sent. It was sold once, by a price that was in force, for no more than the wallet agreed to.
 */
export function matchSignIns(
  market: Market,
  signIns: readonly SignInOrder[],
  books: Books,
): MatchedSignIns {
  const orders = new Map(
    signIns.flatMap((order): (readonly [string, SignInOrder])[] =>
      order.delivered === undefined ? [] : [[order.delivered.paymentId, order]],
    ),
  )
  const problems = [...orders].flatMap(([id, { name }]) =>
    isBySignIn(books.sales.get(id)) ? [] : [`${name} was delivered and never charged`],
  )
  for (const [id, sale] of books.sales) {
    if (!isBySignIn(sale)) continue
    const order = orders.get(id) ?? findUntold(signIns, sale, new Set(orders.values()))
    if (order === undefined) problems.push(`nobody signed in for ${id}, sold to ${sale.payer}`)
    else {
      orders.set(id, order)
      problems.push(...checkSale(market, order, sale))
    }
  }
  return { orders, problems }
}

function isBySignIn(sale: Body | undefined): sale is Body {
  return sale?.identity.startsWith('balance/sign-in/') === true
}

/** Finds the order of the least that was agreed to, so that there is one for each sale where there can be. */
function findUntold(
  signIns: readonly SignInOrder[],
  { payer, request_hash: hash, amount }: Body,
  sold: ReadonlySet<SignInOrder>,
): SignInOrder | undefined {
  const fitting = signIns.filter(
    (one) =>
      one.payer === payer &&
      one.delivered === undefined &&
      !sold.has(one) &&
      hashRequest(toRequestParts(one.asked)) === hash &&
      getMost(one) >= BigInt(amount),
  )
  return fitting.toSorted((a, b) => Number(getMost(a) - getMost(b)))[0]
}

/** Returns the most that a sign-in agreed to which was sent; 0n where none was. */
function getMost({ signIns }: SignInOrder): bigint {
  return signIns.reduce((most, one) => (one.sent > 0 && one.most > most ? one.most : most), 0n)
}

function checkSale(market: Market, order: SignInOrder, sale: Body): string[] {
  const { name, payer, rows, delivered, isNews, libraryItem, signedStep } = order
  const charge = BigInt(sale.amount)
  const most = getMost(order)
  const count = BigInt(sale.row_count)
  const dues = isNews ? [newsPrice] : market.prices.since(signedStep).map((price) => price * count)
  const hash = createHash('sha256')
    .update(delivered?.text ?? '')
    .digest('hex')
  return [
    ...(sale.payer === payer && sale.identity.split('/')[2] === payer
      ? []
      : [`${name} was charged to ${sale.payer}, and ${payer} signed in`]),
    ...(charge > most ? [`${name} was charged ${charge}, and signed in for ${most}`] : []),
    ...(sale.row_count > rows && !isNews
      ? [`${name} was charged for ${count} rows of ${rows}`]
      : []),
    ...(libraryItem === undefined && !dues.includes(charge)
      ? [`${name} was charged ${charge} for ${count}, and not ${dues}`]
      : []),
    ...(delivered !== undefined && sale.result_hash !== hash
      ? [`${name} was charged for another answer than it got`]
      : []),
  ]
}
