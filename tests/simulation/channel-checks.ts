import { createHash } from 'node:crypto'
import { hashRequest } from '@tollbase/verify/receipt'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type Body, type Books, listDifferences } from './books.ts'
import type { Channel, ChannelOrder } from './channel-order.ts'
import { hasUnsent } from './channels.ts'
import { readChannel, readReceiver } from './escrow-model.ts'
import type { Market } from './market.ts'
import { toRequestParts } from './send-request.ts'

/**
 * Finds the order of each sale by a channel, also of one whose answer nobody got: the one that was signed for this
 * request and this total with this voucher.
 */
export function matchChannelSales(
  channels: readonly Channel[],
  books: Books,
): { readonly orders: ReadonlyMap<string, ChannelOrder>; readonly problems: readonly string[] } {
  const signed = channels.flatMap(({ orders }) => orders)
  const orders = new Map<string, ChannelOrder>()
  const problems: string[] = []
  for (const [paymentId, sale] of books.sales) {
    if (sale.paid_from !== 'channel') continue
    // Two that are equal in all of this may have been signed, and one of them answered.
    const fit = signed.filter((one) => isOf(one, sale))
    const order = fit.find(({ delivered }) => delivered?.paymentId === paymentId) ?? fit[0]
    const isQuoted = fit.some(({ quoteId = '' }) => hash(quoteId) === sale.quote_hash)
    if (order === undefined || !isQuoted)
      problems.push(`the sale ${paymentId} is of no voucher that was signed for it`)
    else orders.set(paymentId, order)
  }
  return { orders, problems }
}

function isOf({ channel, base, maxClaimable, asked }: ChannelOrder, sale: Body): boolean {
  return (
    sale.channel?.id === channel.id &&
    BigInt(sale.channel.base) === base &&
    BigInt(sale.channel.max_claimable) === maxClaimable &&
    sale.request_hash === hashRequest(toRequestParts(asked))
  )
}

/**
 * Checks that the chain, the log and the clients say the same of each channel: each charge is of a voucher, is what the
 * price makes of the answer, and was told; all of it is claimed, but what is not worth its gas, and nothing else; and the
 * payer has all that is left.
 */
export async function checkChannels(
  market: Market,
  channels: readonly Channel[],
  {
    books,
    matched,
  }: { readonly books: Books; readonly matched: ReadonlyMap<string, ChannelOrder> },
): Promise<string[]> {
  const rows = await market.database.query<{ text: string }>(
    sql`SELECT concat_ws(' ', id, balance, claimed, withdrawing, charged, uses) AS text FROM system.channel`,
  )
  const known = [...books.channels.channels].map(([id, one]) =>
    [id, one.balance, one.claimed, one.withdrawing, one.charged, one.uses].join(' '),
  )
  return [
    ...listDifferences('channels', { expected: known, found: rows.map(({ text }) => text) }),
    ...channels.flatMap((channel) => [
      ...checkChannel(market, channel, books),
      ...channel.orders.flatMap((order) => checkTold(order, books)),
    ]),
    ...[...matched].flatMap(([paymentId, order]) => checkCharge(order, books.sales.get(paymentId))),
    ...checkSettlement(market, books),
  ]
}

function checkChannel({ chain, scheduler }: Market, channel: Channel, books: Books): string[] {
  const { name, id, network, charged: own, told, orders, isDrawn, isWithdrawing } = channel
  const seen = readChannel(chain.escrow, id)
  const book = books.channels.channels.get(id)
  if (book === undefined)
    return seen.balance === 0n ? [] : [`${name} has ${seen.balance} that nobody knows of`]
  const { charged, claimed, balance, totals } = book
  const gone = sumGone(chain, channel)
  if (gone > 0n) scheduler.note(`${name} has lost deposits of ${gone}`)
  const strange = told.filter((one) => !totals.includes(one))
  const isLast = orders.at(-1)?.delivered !== undefined
  const left = seen.balance - charged
  // Nothing can be claimed of what the chain took back.
  const lacking = left < 0n && gone > 0n ? -left : 0n
  const unclaimed = charged - lacking - seen.claimed
  return [
    ...strange.map((one) => `${name} was told to be charged ${one}, which it never was`),
    ...(isLast && own !== charged ? [`${name} believes ${own}, and was charged ${charged}`] : []),
    ...(claimed === seen.claimed
      ? []
      : [`${name} was claimed ${seen.claimed} from, and ${claimed} is booked`]),
    ...(unclaimed >= 0n && unclaimed < network.minimumPayment
      ? []
      : [`${name} was charged ${charged}, and ${seen.claimed} is claimed`]),
    ...(isWithdrawing || balance === seen.balance
      ? []
      : [`${name} has ${seen.balance}, and ${balance} is booked`]),
    // A payer may withdraw what is not worth its gas to be claimed before.
    ...(left + gone >= 0n || isWithdrawing
      ? []
      : [`${name} has ${seen.balance}, and was charged ${charged}`]),
    ...(isDrawn || left <= 0n ? [] : [`${name} has ${left} that its payer did not get`]),
  ]
}

/** Sums the deposits that came into a channel and that the chain took back for good. */
function sumGone(chain: Market['chain'], { orders }: Channel): bigint {
  const gone = orders.filter(
    ({ payer, depositNonce, deposit }) =>
      deposit > 0n &&
      chain.moved(payer, depositNonce) === undefined &&
      chain.wasConfirmed(payer, depositNonce),
  )
  return gone.reduce((sum, { deposit }) => sum + deposit, 0n)
}

/** All that was answered was charged as its answer said. */
function checkTold({ name, delivered, charge, base }: ChannelOrder, books: Books): string[] {
  if (delivered === undefined) return []
  const sale = books.sales.get(delivered.paymentId)
  if (sale === undefined) return [`${name} was delivered and never charged`]
  return [
    ...(BigInt(sale.amount) === charge && BigInt(sale.channel?.base ?? -1) === base
      ? []
      : [`${name} was told ${charge} after ${base}, and charged ${sale.amount}`]),
    ...(sale.result_hash === hash(delivered.text)
      ? []
      : [`${name} was charged for another answer than it got`]),
  ]
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Goods and notes cost the asked price for each row; checkLibrary knows what the library's things cost. */
function checkCharge(order: ChannelOrder, sale: Body | undefined): string[] {
  const { name, price, rows, libraryItem } = order
  const charge = BigInt(sale?.amount ?? -1)
  if (charge > price) return [`${name} was charged ${charge}, above its quote ${price}`]
  if (libraryItem !== undefined) return []
  const due = (price / BigInt(rows)) * BigInt(sale?.row_count ?? 0)
  return charge === due ? [] : [`${name} was charged ${charge}, and ${due} was due`]
}

/** All that was claimed is sent to the service, but what is not worth its gas, and booked. */
function checkSettlement(market: Market, books: Books): string[] {
  const { chain } = market
  const { id, payTo, asset } = chain.network
  const { claimed, settled } = readReceiver(chain.escrow, payTo, asset.address)
  const booked = books.channels.settled.get(id) ?? 0n
  return [
    ...(hasUnsent(market) ? [`${claimed} was claimed, and ${settled} came`] : []),
    ...(settled === booked ? [] : [`${settled} came from channels, and ${booked} is booked`]),
  ]
}
