import { sql } from '../../packages/server/src/database/sql.ts'
import { type Body, type Books, makeBooks, type Reversed, readBodies } from './books.ts'
import { toPaidAccount } from './delivery-checks.ts'
import { readChannel } from './escrow-model.ts'
import type { Market } from './market.ts'
import type { Order } from './order.ts'

/** The platform's share of each charge, in percent, rounded down. */
const platformPercent = 20n

/** The part of a purchase that matters here, however it is paid. */
type Buying = Pick<Order, 'payer' | 'kind' | 'delivered'>

/**
 * Checks, once no block can be replaced any more, that all that is booked is on the chain or is reversed, and not both;
 * that a payment which came by another transaction is noted with that one; and that each reversal took what its account
 * had, and no more.
 */
export async function checkReversals(
  market: Market,
  orders: readonly Buying[],
  books: Books,
): Promise<string[]> {
  const rows = await market.database.query<{ id: string; transaction: string | null }>(
    sql`SELECT id, transaction FROM operations.taken_back`,
  )
  const { reversals } = books
  const lost = [...reversals.values()].reduce((sum, { body }) => sum + BigInt(body.lost), 0n)
  if (reversals.size > 0)
    market.scheduler.note(`${reversals.size} moves are reversed, ${lost} is lost`)
  const noted = new Map(rows.map((row) => [row.id, row.transaction]))
  const deposits = listOwnDeposits(market, books)
  const known = new Set([...deposits.map((one) => one.payment_id), ...books.transfers.keys()])
  return [
    ...rows.flatMap(({ id }) => (known.has(id) ? [] : [`${id} was never booked, and taken back`])),
    ...deposits.flatMap((body) => checkPlace(market, body, { books, noted })),
    ...[...reversals.values()].flatMap((one) => checkSums(one, orders, books)),
  ]
}

/**
 * Checks that what is held of accounts is there, from its release on and until its reversal. Until the next look at the
 * chain, the hold of a purchase whose request was at work has what that cost, too.
 */
export async function checkHeldMoney(market: Market): Promise<string[]> {
  const found = await market.database.query<{ account: string }>(sql`
    SELECT hold.account FROM operations.account_hold AS hold
    LEFT JOIN system.account AS one ON one.account = hold.account
    LEFT JOIN LATERAL (
      SELECT -sum((part ->> 'amount')::numeric) AS cost
      FROM system.sale AS sale, jsonb_array_elements(sale.body::jsonb -> 'postings') AS part
      WHERE sale.payment_id = substr(hold.id, 10) AND part ->> 'account' = hold.account) AS sold ON true
    WHERE hold.id LIKE 'reversal\\_%' AND NOT EXISTS (
      SELECT 1 FROM system.reversal AS done WHERE 'reversal_' || done.payment_id = hold.id)
      AND NOT EXISTS (SELECT 1 FROM system.account AS kept WHERE kept.balance > 0
        AND kept.account = 'held:' || hold.account || ':' || substr(hold.id, 10))
    GROUP BY hold.account, one.balance
    HAVING sum(greatest(hold.amount - coalesce(sold.cost, 0), 0)) > coalesce(one.balance, 0)`)
  return found.map(({ account }) => `${account} spent what the chain took back from it`)
}

/**
 * Lists the accounts that could spend money which the chain does not have, of which as much must be held as they have,
 * and the channels of which more is believed than their deposits.
 */
export async function listUnheld(market: Market): Promise<string[]> {
  const books = makeBooks(await readBodies(market.database))
  const rows = await market.database.query<{ account: string; amount: string }>(sql`
    SELECT account, sum(amount)::text AS amount FROM operations.account_hold AS hold
    WHERE NOT EXISTS (SELECT 1 FROM system.account AS kept WHERE kept.balance > 0
      AND kept.account = 'held:' || hold.account || ':' || substr(hold.id, 10)) GROUP BY account`)
  const held = new Map(rows.map(({ account, amount }) => [account, BigInt(amount)]))
  const gone = new Map<string, bigint>()
  for (const body of listOwnDeposits(market, books)) {
    const { payment_id: id, amount } = body
    const isDirect = books.sales.get(id)?.paid_to !== undefined
    if (isDirect || books.reversals.has(id) || findMove(market, body) !== undefined) continue
    const account = toPaidAccount(toParty(body).payer)
    // It waits for the operator, and is nobody's to spend.
    if ((books.balances.get(`held:${account}:${id}`) ?? 0n) > 0n) continue
    gone.set(account, (gone.get(account) ?? 0n) + BigInt(amount))
  }
  const channels = [...books.channels.channels].flatMap(([id, { balance, withdrawing }]) =>
    // One of which a refund is under way buys nothing.
    !held.has(`channel:${id}`) &&
    balance - withdrawing > readChannel(market.chain.escrow, id).balance
      ? [`channel:${id}`]
      : [],
  )
  const accounts = [...gone].flatMap(([account, sum]) => {
    const balance = books.balances.get(account) ?? 0n
    const due = sum < balance ? sum : balance
    return (held.get(account) ?? 0n) < due ? [account] : []
  })
  return [...channels, ...accounts]
}

function checkPlace(
  market: Market,
  body: Body,
  { books, noted }: { readonly books: Books; readonly noted: ReadonlyMap<string, string | null> },
): string[] {
  const { payment_id: id, transaction } = body
  const now = findMove(market, body)
  if (books.reversals.has(id)) {
    if (now !== undefined) return [`${id} was reversed, and its money is there by ${now.hash}`]
    return noted.has(id) ? [`${id} was reversed, and is noted as taken back`] : []
  }
  if (now === undefined) return [`${id} is booked, and the chain does not have it`]
  const other = now.hash === transaction ? undefined : now.hash
  return noted.get(id) === other
    ? []
    : [`${id} came by ${now.hash}, is booked by ${transaction}, and noted by ${noted.get(id)}`]
}

function checkSums({ body, before, nth }: Reversed, orders: readonly Buying[], books: Books) {
  const { payment_id: id, identity } = body
  const [amount, moved, lost] = [BigInt(body.amount), BigInt(body.moved), BigInt(body.lost)]
  const text = `the reversal of ${id} took ${moved} and lost ${lost} of ${amount}`
  const deposit = books.deposits.get(identity)
  if (deposit?.payment_id !== id) {
    const isWhole = moved === amount && lost === 0n
    return isWhole && books.transfers.get(id)?.start.amount === body.amount ? [] : [text]
  }
  const sale = books.sales.get(id)
  if (sale?.paid_to !== undefined) {
    const fee = (BigInt(sale.amount) * platformPercent) / 100n
    return moved === 0n && lost === fee ? [] : [`${text}, and its seller paid a share of ${fee}`]
  }
  const { payer } = toParty(body)
  const account = toPaidAccount(payer)
  if ((before.get(`held:${account}:${id}`) ?? 0n) > 0n)
    return moved === amount && lost === 0n ? [] : [`${text}, and all of it was held`]
  const balance = before.get(account) ?? 0n
  const isSum =
    moved >= 0n && lost >= 0n && moved + lost === amount && deposit.amount === body.amount
  if (!isSum || moved > balance) return [`${text}, and ${account} had ${balance}`]
  // A purchase under way held it for its own purpose, and so did other reversals.
  const isBusy =
    (books.takenAt.get(account) ?? 0) > nth ||
    orders.some((one) => one.payer === payer && one.kind === 'write' && one.delivered === undefined)
  const taken = [...books.reversals.values()]
    .filter((one) => one.nth > nth && toPaidAccount(toParty(one.body).payer) === account)
    .reduce((sum, one) => sum + BigInt(one.body.amount), 0n)
  // The money of another purchase that was not answered waits for its buyer to come again.
  const waiting = [...books.deposits.values()]
    .filter((one) => one.payment_id !== id && toPaidAccount(toParty(one).payer) === account)
    .filter((one) => !books.sales.has(one.payment_id))
    .reduce((sum, one) => sum + BigInt(one.amount), 0n)
  return lost > 0n && balance - moved > taken + waiting && !isBusy
    ? [`${text}, and ${account} had ${balance}`]
    : []
}

function listOwnDeposits({ chain }: Market, books: Books): readonly Body[] {
  return [...books.deposits.values()].filter(({ network }) => network === chain.network.id)
}

function findMove({ chain }: Market, body: Body) {
  const { payer, nonce } = toParty(body)
  return chain.moved(payer, nonce)
}

/** Reads who pays, and by which authorization, from a payment's identity. */
function toParty({ identity }: Body): { readonly payer: string; readonly nonce: string } {
  const [, , payer = '', nonce = ''] = identity.split('/')
  return { payer, nonce }
}
