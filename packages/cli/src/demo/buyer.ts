import { formatDollars } from '@tollbase/server/base/format-usd'
import { computeCost } from '@tollbase/server/model/compute-cost'
import { parseReceipt, type Receipt } from '@tollbase/verify/receipt'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { formatMove, type Market, readBalances } from './market.ts'
import { type Exchange, payAndFetch, type Version } from './payer.ts'
import { formatCount } from './screen.ts'
import { listValues, type Tariff, tariffs } from './seller.ts'

export type Buyer = { readonly account: PrivateKeyAccount; readonly faucet: bigint }

/** One purchase, with all that is needed to replay and to prove it. */
export type Bought = {
  readonly exchange: Exchange
  readonly receipt: Receipt
  /** As the service sent it. */
  readonly receiptText: string
}

type Order = {
  readonly words: string
  readonly client: string
  readonly version: Version
  readonly tariff: Tariff
  readonly columns: readonly string[]
  readonly body: {
    readonly root: string
    readonly find: object
    readonly sortBy: string
    readonly sortDirection: string
    readonly limit: number
    readonly max_kb: number
  }
}

const faucetAmount = 100_000_000n
const shownRows = 5
const largestFirst = { sortBy: 'population', sortDirection: 'descending' }

const orders: readonly [Order, Order, Order] = [
  {
    words: 'the five largest places of Japan',
    client: '@x402/fetch, all defaults (x402 version 2)',
    version: 2,
    tariff: tariffs.cities,
    columns: ['name', 'country', 'population', 'latitude', 'longitude'],
    body: {
      root: 'geodata::cities',
      find: { country: { is: 'JP' } },
      ...largestFirst,
      limit: 5,
      max_kb: 4,
    },
  },
  {
    words: 'places whose name begins with San, with 200,000 people or more, at most 50',
    client: '@x402/fetch speaking x402 version 1',
    version: 1,
    tariff: tariffs.cities,
    columns: ['name', 'country', 'population'],
    body: {
      root: 'geodata::cities',
      find: { and: [{ name: { startsWith: 'San' } }, { population: { gte: 200_000 } }] },
      ...largestFirst,
      limit: 50,
      max_kb: 16,
    },
  },
  {
    words: 'the eight largest countries of the other collection, which is sold by the KB alone',
    client: '@x402/fetch, all defaults (x402 version 2)',
    version: 2,
    tariff: tariffs.countries,
    columns: ['name', 'places', 'population', 'largest'],
    body: { root: 'geodata::countries', find: {}, ...largestFirst, limit: 8, max_kb: 3 },
  },
]

/** Step 5: a new wallet asks and is told the price. */
export async function meetPaywall(market: Market): Promise<Buyer> {
  const { screen, api } = market
  screen.step('A buyer asks without paying')
  const account = privateKeyToAccount(generatePrivateKey())
  const { tx_hash } = await api.call('requestFaucet', {
    body: { address: account.address, amount: String(faucetAmount) },
  })
  const before = await readBalances(market, account.address)
  screen.facts([
    ['buyer', `${account.address}, a new key`],
    ['faucet', `${formatDollars(faucetAmount)} of test money, transaction ${tx_hash}`],
    ['has', `${formatDollars(before.onChain)} on the chain, ${formatDollars(before.here)} here`],
  ])
  const [order] = orders
  const reply = await send(market, order.body)
  const text = await reply.text()
  const { error, accepts }: { error: string; accepts: readonly Accepted[] } = JSON.parse(text)
  const [paymentMethod] = accepts
  screen.check(
    reply.status === 402 && paymentMethod !== undefined && !text.includes('"records"'),
    `asking for ${order.words}: 402, "${error}", and none of the data`,
  )
  screen.facts([
    [
      'price',
      `at most ${formatDollars(BigInt(paymentMethod?.maxAmountRequired ?? 0))} (${priceText(order)})`,
    ],
    [
      'pay',
      `${paymentMethod?.extra.tokenSymbol} on ${paymentMethod?.network} (here: test dollars on the local chain)`,
    ],
    ['to', `${paymentMethod?.payTo}`],
    [
      'quote',
      `${paymentMethod?.extra.quoteId}, good for ${paymentMethod?.maxTimeoutSeconds} seconds`,
    ],
  ])
  return { account, faucet: faucetAmount }
}

/** Step 6: three purchases, each paid by the client itself. */
export async function buyThrice(market: Market, buyer: Buyer): Promise<Bought[]> {
  const { screen } = market
  screen.step('The buyer buys three answers')
  const bought: Bought[] = []
  for (const [at, order] of orders.entries()) {
    if (at > 0) screen.gap()
    screen.say(`${at + 1}. ${order.words}`)
    screen.note(`   by ${order.client}`)
    bought.push(await buy(market, buyer, order))
  }
  return bought
}

/** Step 7: the same payment again, for the same request and for another. */
export async function replayPayment(market: Market, buyer: Buyer, bought: Bought): Promise<void> {
  const { screen } = market
  screen.step('The buyer sends one payment twice')
  const { payment, replyBytes } = bought.exchange
  const headers = payment === undefined ? {} : { [payment[0]]: payment[1] }
  const before = await readBalances(market, buyer.account.address)
  const again = await send(market, orders[0].body, headers)
  const bytes = new Uint8Array(await again.arrayBuffer())
  screen.check(
    again.status === 200 && Buffer.from(bytes).equals(replyBytes),
    `for the same request: the same answer, byte for byte (${formatCount(bytes.length)} bytes)`,
  )
  screen.check(
    again.headers.get('x-receipt-id') === bought.receipt.receipt_id,
    `the same receipt, ${bought.receipt.receipt_id}`,
  )
  const other = { ...orders[0].body, find: { country: { is: 'FR' } } }
  const refusal = await send(market, other, headers)
  const { code, error }: { code?: string; error?: string } = JSON.parse(await refusal.text())
  screen.check(
    refusal.status === 409 && code === 'PAYMENT_ALREADY_USED',
    `for places of France instead: refused, ${refusal.status} ${code}: ${error}`,
  )
  const after = await readBalances(market, buyer.account.address)
  screen.check(
    before.onChain === after.onChain && before.here === after.here,
    `nothing was charged: ${formatDollars(after.onChain)} on the chain, ${formatDollars(after.here)} here`,
  )
}

type Accepted = {
  readonly maxAmountRequired: string
  readonly network: string
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  readonly extra: { readonly tokenSymbol: string; readonly quoteId: string }
}

async function buy(market: Market, buyer: Buyer, order: Order): Promise<Bought> {
  const { screen, api } = market
  const { account } = buyer
  const before = await readBalances(market, account.address)
  const exchange = await payAndFetch(`${api.url}/list`, { ...order, account, stop: api.stop })
  const text = new TextDecoder().decode(exchange.replyBytes)
  screen.check(exchange.reply.status === 200, `paid and delivered (${exchange.reply.status})`)
  const { records }: { records: readonly unknown[] } = JSON.parse(text)
  const receiptId = exchange.reply.headers.get('x-receipt-id') ?? ''
  const receiptText = await api.text('getReceipt', { params: { id: receiptId } })
  const receipt = parseReceipt(JSON.parse(receiptText))
  const after = await readBalances(market, account.address)
  const [charge, change] = [BigInt(receipt.amount), BigInt(receipt.change)]
  // The change of the payments before it may pay for it.
  const isFromBalance = receipt.paid_from === 'balance'
  const bytes = bytesSold(text)
  screen.facts([
    ['quoted', `${formatDollars(exchange.asked)} at most: ${priceText(order)}`],
    [
      'paid',
      isFromBalance
        ? `${formatDollars(0n)}  the buyer's balance here pays, without a transaction`
        : `${formatDollars(before.onChain - after.onChain)}  transaction ${receipt.transaction}`,
    ],
    [
      'charged',
      `${formatDollars(charge)}  for ${records.length} rows, ${formatCount(bytes)} bytes`,
    ],
    [
      'change',
      isFromBalance ? 'none' : `${formatDollars(change)}  stays on the buyer's balance here`,
    ],
    ['on chain', formatMove(before.onChain, after.onChain)],
    ['here', formatMove(before.here, after.here)],
    ['receipt', receiptId],
  ])
  screen.table(
    order.columns,
    records.slice(0, shownRows).map((one) => listValues(one, order.columns)),
  )
  if (records.length > shownRows) screen.note(`… and ${records.length - shownRows} more`)
  screen.check(
    charge === computeCost(order.tariff, { rows: records.length, bytes }) &&
      charge <= exchange.asked,
    'the charge is what the price list says for these rows and bytes, and not above the quote',
  )
  if (isFromBalance)
    screen.check(
      before.onChain === after.onChain && before.here - after.here === charge,
      'the balance paid the charge, once; the signed transfer was never sent',
    )
  else
    screen.check(
      before.onChain - after.onChain === exchange.asked &&
        after.here - before.here === change &&
        charge + change === exchange.asked,
      'the wallet paid the quote, once; what was not used is on the balance',
    )
  return { exchange, receipt, receiptText }
}

function send(market: Market, body: object, headers: Readonly<Record<string, string>> = {}) {
  return fetch(`${market.api.url}/list`, {
    method: 'POST',
    signal: market.api.stop,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

/** The quote in words: what the request can cost at most. */
function priceText({ tariff, body }: Order): string {
  const parts = [
    [tariff.perAccess, 'the access'],
    [tariff.perRow * BigInt(body.limit), `${body.limit} rows`],
    [tariff.perKb * BigInt(body.max_kb), `${body.max_kb} KB`],
  ] as const
  return parts
    .filter(([amount]) => amount > 0n)
    .map(([amount, name]) => `${formatDollars(amount)} for ${name}`)
    .join(' + ')
}

/** The bytes that a price per KB counts: the records as they were sent, with the commas between. */
function bytesSold(reply: string): number {
  const start = reply.indexOf('[') + 1
  return Buffer.byteLength(reply.slice(start, reply.lastIndexOf('],"total":')))
}
