import { createHash } from 'node:crypto'
import { hashRequest } from '@tollbase/verify/receipt'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { treasurer } from './agents.ts'
import { type Body, type Books, findPayingAccount, listDifferences, readEntries } from './books.ts'
import { addChannelBalances } from './channel-books.ts'
import { library } from './library.ts'
import type { Market } from './market.ts'
import { type Bought, type Order, readRows } from './order.ts'
import { toRequestParts } from './send-request.ts'
import { agency, application, feeds, news, press, supplier } from './shop.ts'
import { isOfResult } from './surveys.ts'

/** The platform's share of each charge, in percent, rounded down. */
const platformPercent = 20n

/**
 * Checks that each account has what follows from the money that arrived and the charges alone, whatever the
 * postings say.
 */
export function checkAccounts(
  { chain, remote }: Market,
  orders: readonly Order[],
  books: Books,
): string[] {
  const expected = new Map<string, bigint>()
  const add = (account: string, amount: bigint) =>
    expected.set(account, (expected.get(account) ?? 0n) + amount)
  for (const where of [chain, remote]) {
    const { network } = where
    const toIdentity = (key: string) => `${network.id}/${network.asset.address}/${key}`
    const direct = where.allMovedElsewhere().filter((key) => books.deposits.has(toIdentity(key)))
    for (const key of [...where.allMoved(), ...direct]) {
      const [payer = '', nonce = ''] = key.split('/')
      const value = where.moved(payer, nonce)?.value ?? 0n
      add(toPaidAccount(payer), value)
      add(`outside:${where.network.id}`, -value)
    }
  }
  addReversals(chain, books, add)
  for (const [id, { start, end }] of books.transfers) {
    const value = BigInt(start.amount)
    const account = findPayingAccount(start)
    add(account, -value)
    if (end?.kind === 'transfer_returned' || books.reversals.has(id)) add(account, value)
    else add(`${end === undefined ? 'transit' : 'outside'}:${start.network}`, value)
  }
  for (const { app, payer, amount } of books.refunds.values()) {
    add(`app:${app}`, -BigInt(amount))
    add(toAccount(payer), BigInt(amount))
  }
  for (const { app, paid } of books.fees) {
    add(`app:${app}`, -BigInt(paid))
    add('platform', BigInt(paid))
  }
  addChannelBalances(books.channels, chain.network.id, add)
  const derives = new Map(orders.map((order) => [getPaymentIdentity(order), order.derive]))
  for (const sale of books.sales.values()) {
    const charge = BigInt(sale.amount)
    const derive = derives.get(sale.identity) ?? 0n
    add(toAccount(getPayer(sale.identity)), -charge)
    const seller = [press, library].includes(sale.app) ? sale.app : application
    if (sale.paid_to !== undefined) {
      add(`app:${seller}`, -charge)
      add(`outside:${sale.network}`, charge)
    }
    for (const [app, part] of [
      [supplier, derive],
      [seller, charge - derive],
    ] as const) {
      const fee = (part * platformPercent) / 100n
      add('platform', fee)
      add(`app:${app}`, part - fee)
    }
  }
  const lines = (balances: ReadonlyMap<string, bigint>) =>
    [...balances].filter(([, one]) => one !== 0n).map(([account, one]) => `${account} ${one}`)
  return listDifferences('accounts', { expected: lines(expected), found: lines(books.balances) })
}

/**
 * Checks that every sale is of one order that was delivered, and states the truth about it: a receipt is made of
 * this.
 */
export function checkSales(
  market: Market,
  bought: readonly Bought[],
  { books, lost }: { readonly books: Books; readonly lost: ReadonlySet<string> },
): string[] {
  const byPayment = new Map(
    bought.flatMap((order) =>
      order.delivered === undefined ? [] : [[order.delivered.paymentId, order] as const],
    ),
  )
  return [...books.sales].flatMap(([paymentId, sale]) => {
    const order = byPayment.get(paymentId)
    if (order === undefined && lost.has(paymentId)) return []
    if (order === undefined) return [`the sale ${paymentId} is of no order that was delivered`]
    return Object.entries(makeSaleFacts(market, order, sale)).flatMap(([name, value]) => {
      const found = sale[name as keyof Body]
      return found === value
        ? []
        : [`${order.name} has a sale whose ${name} is ${found}, and not ${value}`]
    })
  })
}

/**
 * Checks that the answer kept for a repeated request is the delivered one, and that the booked sale is the one kept
 * with it.
 */
export async function checkKept(
  database: Database,
  orders: readonly Bought[],
  books: Books,
): Promise<string[]> {
  const rows = await database.query<{ payment_id: string; body: Buffer; sale: string | null }>(
    sql`SELECT payment_id, body, sale FROM operations.kept_reply`,
  )
  const kept = new Map(rows.map((row) => [row.payment_id, row]))
  return orders.flatMap(({ kind, name, delivered, libraryItem }) => {
    if (delivered === undefined || kind === 'deposit') return []
    const reply = kept.get(delivered.paymentId)
    if (reply === undefined) return [`the answer of ${name} is not kept`]
    const booked = books.sales.get(delivered.paymentId)?.text
    // A file stays where it is, and its kept answer names it.
    const isKept = (body: string) =>
      libraryItem === 'plates'
        ? JSON.parse(body).sha256 === sha256Hex(delivered.text)
        : body === delivered.text
    return [
      ...(isKept(String(reply.body)) ? [] : [`another answer is kept for ${name}`]),
      ...((reply.sale ?? booked) === booked && booked !== undefined
        ? []
        : [`${name} was booked otherwise than it was kept`]),
    ]
  })
}

/**
 * Checks that a read has what was in the log at the position that it states: all of it up to its limit, in the
 * order of storing.
 */
export async function checkReads(
  database: Database,
  orders: readonly Bought[],
  books: Books,
): Promise<string[]> {
  const all = (await readEntries(database, 'app_1')).flatMap(
    ({ height, sequence, header, body }) =>
      header.type === 'record' ? [{ height, sequence, collection: header.collection, body }] : [],
  )
  // The first record of all is one of the goods.
  const goods = all.filter(({ collection }) => collection === all[0]?.collection)
  const sample = all.find(({ body }) => JSON.parse(body).sample !== undefined)
  const samples = all.filter(({ collection }) => collection === sample?.collection)
  return orders.flatMap(({ kind, isJoin, isNews, libraryItem, shelf, name, delivered, rows }) => {
    if (delivered === undefined || kind !== 'read' || libraryItem !== undefined) return []
    const { as_of } = JSON.parse(delivered.text)
    const records = readRows(delivered.text) ?? []
    if (isNews)
      return JSON.stringify(records) === JSON.stringify(news) ? [] : [`${name} was sold ${records}`]
    const stored = (isOfResult(shelf) ? samples : goods)
      .filter(
        ({ height, sequence }) =>
          height < as_of.block_height ||
          (height === as_of.block_height && sequence <= as_of.sequence),
      )
      .map(({ body }) => JSON.parse(body))
    if (shelf === 'surveys' || shelf === 'galleries')
      return checkSample(name, { found: records, stored, rows })
    const then = stored
      .slice(0, rows)
      .map((good) => JSON.stringify(isJoin ? { ...good, feed: findFeed(good) } : good))
    const found = records.map((record: unknown) => JSON.stringify(record))
    const isSame = JSON.stringify(found) === JSON.stringify(then)
    const remote = books.sales.get(delivered.paymentId)?.as_of
    return [
      ...(isSame
        ? []
        : [`${name} was sold ${found}, and at ${as_of.block_height} there was ${then}`]),
      ...(JSON.stringify(remote) === JSON.stringify(as_of)
        ? []
        : [`${name} was read at ${as_of.block_height}, and its sale says ${remote?.block_height}`]),
    ]
  })
}

/** Checks that rows in no certain order are some of those that were stored, as many as there are or were asked for. */
function checkSample(
  name: string,
  given: {
    readonly found: readonly { readonly sample: string }[]
    readonly stored: readonly { readonly sample: string }[]
    readonly rows: number
  },
): string[] {
  const { found, stored, rows } = given
  const there = new Set(stored.map(({ sample }) => sample))
  const own = new Set(found.map(({ sample }) => sample))
  const isOfThem = [...own].every((sample) => there.has(sample))
  const isRight = isOfThem && own.size === found.length
  return isRight && own.size === Math.min(rows, there.size)
    ? []
    : [`${name} was sold ${[...own]}, and there was ${[...there]}`]
}

function findFeed(good: { readonly id: string }) {
  return feeds.find(({ id }) => id === good.id) ?? null
}

function getPaymentIdentity({ network, payer, nonce }: Order): string {
  return `${network.id}/${network.asset.address}/${payer}/${nonce}`
}

/** Adds what follows from money that was booked, and then reversed as far as its account had it. */
function addReversals(
  { network }: Market['chain'],
  books: Books,
  add: (account: string, amount: bigint) => void,
): void {
  for (const { body } of books.reversals.values()) {
    const deposit = books.deposits.get(body.identity)
    if (deposit === undefined) continue
    const [value, lost] = [BigInt(deposit.amount), BigInt(body.lost)]
    add('losses', -lost)
    const sale = books.sales.get(body.payment_id)
    const payer = getPayer(body.identity)
    if (sale?.paid_to === undefined) add(toPaidAccount(payer), value - BigInt(body.moved))
    else {
      add(toPaidAccount(payer), value)
      add(`outside:${network.id}`, -value)
      add(`app:${sale.app}`, lost)
    }
  }
}

/** The account that gets the money which a payer brings. */
export function toPaidAccount(payer: string): string {
  return payer === treasurer ? `app:${agency}` : toAccount(payer)
}

/** A key may pay for an application, whose name as a payer is that of its account, as that of a channel is. */
function toAccount(payer: string): string {
  return /^(app|channel):/.test(payer) ? payer : `wallet:${payer}`
}

function getPayer(identity: string): string {
  return identity.split('/')[2] ?? ''
}

/** Returns the members that the sale of an order must have beside amounts and the answer's hash. */
function makeSaleFacts({ chain, remote }: Market, order: Bought, sale: Body): Partial<Body> {
  const { network, payer, nonce, kind, asked, quoteId } = order
  const where = network.id === chain.network.id ? chain : remote
  const moves = where.listMoves(payer, nonce).map(({ hash }) => hash)
  const transaction = moves.find((one) => one === sale.transaction) ?? moves.at(-1) ?? 'none'
  const isElsewhere = order.libraryItem !== undefined
  const seller = order.isNews ? press : isElsewhere ? library : application
  return {
    payer,
    payee: `app:${seller}`,
    app: seller,
    network: network.id,
    asset: network.asset.address,
    transaction: sale.paid_from !== undefined ? null : transaction,
    operation: kind === 'read' ? getReadOperation(order) : 'store',
    request_hash: hashRequest(toRequestParts(asked)),
    // Two vouchers that are equal may have been signed under two quotes.
    ...(sale.paid_from !== 'channel' && {
      quote_hash: quoteId === undefined ? null : sha256Hex(quoteId),
    }),
    change:
      sale.paid_from !== undefined ? '0' : String(BigInt(sale.deposited) - BigInt(sale.amount)),
    row_count: kind === 'write' ? order.rows : countRows(order),
  }
}

function getReadOperation({ libraryItem, shelf }: Bought): string {
  if (libraryItem === 'pass') return 'pass'
  if (libraryItem === 'plates') return 'getBlob'
  return libraryItem === 'extracts' || shelf === 'surveys' ? 'query' : 'list'
}

function countRows({ libraryItem, delivered }: Bought): number {
  if (libraryItem === 'pass') return 0
  if (libraryItem === 'plates') return 1
  return readRows(delivered?.text ?? '{}')?.length ?? 0
}

function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
