import { createHash } from 'node:crypto'
import { requestHash } from '@tollbase/verify/receipt'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type Body, type Books, differences, entriesOf } from './books.ts'
import type { Market } from './market.ts'
import type { Order } from './orders.ts'
import { application, feeds, supplier } from './shop.ts'

/** What the platform keeps of each charge, in percent, rounded down. */
const platformPercent = 20n

/** Each account has what follows from the money that arrived and the charges alone, whatever the postings say. */
export function checkAccounts(
  { chain, told }: Market,
  orders: readonly Order[],
  books: Books,
): string[] {
  const expected = new Map<string, bigint>()
  const add = (account: string, amount: bigint) =>
    expected.set(account, (expected.get(account) ?? 0n) + amount)
  for (const where of [chain, told]) {
    for (const key of where.allMoved()) {
      const [payer = '', nonce = ''] = key.split('/')
      const value = where.moved(payer, nonce)?.value ?? 0n
      add(`wallet:${payer}`, value)
      add(`outside:${where.network.id}`, -value)
    }
  }
  const derives = new Map(orders.map((order) => [identityOf(order), order.derive]))
  for (const sale of books.sales.values()) {
    const charge = BigInt(sale.amount)
    const derive = derives.get(sale.identity) ?? 0n
    add(`wallet:${payerOf(sale.identity)}`, -charge)
    for (const [app, part] of [
      [supplier, derive],
      [application, charge - derive],
    ] as const) {
      const fee = (part * platformPercent) / 100n
      add('platform', fee)
      add(`app:${app}`, part - fee)
    }
  }
  const lines = (balances: ReadonlyMap<string, bigint>) =>
    [...balances].filter(([, one]) => one !== 0n).map(([account, one]) => `${account} ${one}`)
  return differences('accounts', { expected: lines(expected), found: lines(books.balances) })
}

/** Every sale is of one order that was delivered, and says of it what is true: a receipt is made of this. */
export function checkSales(market: Market, orders: readonly Order[], books: Books): string[] {
  const byPayment = new Map(
    orders.flatMap((order) =>
      order.delivered === undefined ? [] : [[order.delivered.paymentId, order] as const],
    ),
  )
  return [...books.sales].flatMap(([paymentId, sale]) => {
    const order = byPayment.get(paymentId)
    if (order === undefined) return [`the sale ${paymentId} is of no order that was delivered`]
    return Object.entries(factsOf(market, order, sale)).flatMap(([name, value]) => {
      const found = sale[name as keyof Body]
      return found === value
        ? []
        : [`${order.name} has a sale whose ${name} is ${found}, and not ${value}`]
    })
  })
}

/** What is kept for a repeated request is what was delivered, and what was booked is what was kept with it. */
export async function checkKept(
  database: Database,
  orders: readonly Order[],
  books: Books,
): Promise<string[]> {
  const rows = await database.query<{ payment_id: string; body: Buffer; sale: string }>(
    sql`SELECT payment_id, body, sale FROM operations.kept_reply`,
  )
  const kept = new Map(rows.map((row) => [row.payment_id, row]))
  return orders.flatMap(({ kind, name, delivered }) => {
    if (delivered === undefined || kind === 'deposit') return []
    const reply = kept.get(delivered.paymentId)
    if (reply === undefined) return [`the answer of ${name} is not kept`]
    return [
      ...(reply.body.toString() === delivered.text ? [] : [`another answer is kept for ${name}`]),
      ...(reply.sale === books.sales.get(delivered.paymentId)?.text
        ? []
        : [`${name} was booked otherwise than it was kept`]),
    ]
  })
}

/** A read has what was in the log at the position that it states: all of it up to its limit, in the order of storing. */
export async function checkReads(
  database: Database,
  orders: readonly Order[],
  books: Books,
): Promise<string[]> {
  const stored = (await entriesOf(database, 'app_1')).flatMap(
    ({ height, sequence, header, body }) =>
      header.type === 'record' ? [{ height, sequence, collection: header.collection, body }] : [],
  )
  // The first record of all is one of the goods.
  const goods = stored.filter(({ collection }) => collection === stored[0]?.collection)
  return orders.flatMap(({ kind, isJoin, name, delivered, rows }) => {
    if (delivered === undefined || kind !== 'read') return []
    const { records, as_of } = JSON.parse(delivered.text)
    const then = goods
      .filter(
        ({ height, sequence }) =>
          height < as_of.block_height ||
          (height === as_of.block_height && sequence <= as_of.sequence),
      )
      .slice(0, rows)
      .map(({ body }) => JSON.parse(body))
      .map((good) => JSON.stringify(isJoin ? { ...good, feed: feedOf(good) } : good))
    const found = records.map((record: unknown) => JSON.stringify(record))
    const isSame = JSON.stringify(found) === JSON.stringify(then)
    const told = books.sales.get(delivered.paymentId)?.as_of
    return [
      ...(isSame
        ? []
        : [`${name} was sold ${found}, and at ${as_of.block_height} there was ${then}`]),
      ...(JSON.stringify(told) === JSON.stringify(as_of)
        ? []
        : [`${name} was read at ${as_of.block_height}, and its sale says ${told?.block_height}`]),
    ]
  })
}

function feedOf(good: { readonly id: string }) {
  return feeds.find(({ id }) => id === good.id) ?? null
}

function identityOf({ network, payer, nonce }: Order): string {
  return `${network.id}/${network.asset.address}/${payer}/${nonce}`
}

function payerOf(identity: string): string {
  return identity.split('/')[2] ?? ''
}

/** What the sale of an order must say beside amounts and the answer's hash. */
function factsOf({ chain, told }: Market, order: Order, sale: Body): Partial<Body> {
  const { network, payer, nonce, kind, asked, delivered, quoteId } = order
  const where = network.id === chain.network.id ? chain : told
  const reply = JSON.parse(delivered?.text ?? '{}')
  return {
    payer,
    payee: `app:${application}`,
    app: application,
    network: network.id,
    asset: network.asset.address,
    transaction: where.moved(payer, nonce)?.hash ?? 'none',
    operation: kind === 'read' ? 'list' : 'store',
    request_hash: requestHash({
      method: 'POST',
      path: asked.path,
      query: '',
      body: Buffer.from(JSON.stringify(asked.body)),
    }),
    quote_hash: quoteId === undefined ? null : sha256Hex(quoteId),
    change: String(BigInt(sale.deposited) - BigInt(sale.amount)),
    row_count: kind === 'read' ? reply.records?.length : order.rows,
  }
}

function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
