import { createHash } from 'node:crypto'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { type Books, listDifferences, makeBooks, readBodies, readEntries } from './books.ts'
import { checkChannels, matchChannelSales } from './channel-checks.ts'
import type { Channel, ChannelOrder } from './channel-order.ts'
import { checkAccounts, checkKept, checkReads, checkSales } from './delivery-checks.ts'
import type { Agent } from './errands.ts'
import { checkAgents, listSold } from './key-checks.ts'
import { samplePrice } from './letter-rules.ts'
import { type Buying, checkLibrary, type Unsold } from './library-checks.ts'
import type { Market } from './market.ts'
import type { Takings } from './money-out.ts'
import { checkPurchases, listSoldOrders, type NamedPurchase } from './named-purchases.ts'
import { checkNamed, listNamedMarks, type Named } from './named-stores.ts'
import { checkNatives } from './native-checks.ts'
import { type Bought, type Order, smallestPayment } from './order.ts'
import { checkRefunds, type Refunding } from './refunds.ts'
import { checkRestores } from './restore-checks.ts'
import { checkReversals } from './reversal-checks.ts'
import type { Acknowledged } from './sellers.ts'
import { checkSettlements } from './settlement-checks.ts'
import type { SettlementOrder } from './settlement-order.ts'
import { pressWallet } from './shop.ts'
import { matchSignIns } from './sign-in-checks.ts'
import type { SignInOrder } from './sign-in-order.ts'
import { checkFees } from './storage-checks.ts'
import { isOfResult } from './surveys.ts'
import { checkTransfers } from './transfer-checks.ts'

const applicationSchema = 'app_1'

/** All that people did in a run, as they know of it. */
export type Happened = {
  readonly orders: Order[]
  readonly acknowledged: Acknowledged[]
  readonly takings: Takings
  readonly agents: Agent[]
  readonly named: Named[]
  readonly refunds: Refunding[]
  readonly channels: Channel[]
  readonly purchases: NamedPurchase[]
  readonly signIns: SignInOrder[]
  readonly settlements: SettlementOrder[]
}

/**
 * Checks the invariants of every moment, whatever is under way: debits equal credits, no payer is in debt, and nothing is
 * claimed from a channel beyond what is booked.
 */
export async function checkLedger(database: Database): Promise<string[]> {
  const found = await database.query<{ leaf: bigint | null; account: string | null }>(
    sql`SELECT leaf, NULL AS account FROM system.posting GROUP BY leaf HAVING sum(amount) <> 0
      UNION ALL SELECT NULL, account FROM system.posting
        WHERE account NOT LIKE 'outside:%' AND account NOT LIKE 'escrow:%' AND account <> 'losses'
          AND CASE WHEN account LIKE 'channel:%' THEN balance_after > 0 ELSE balance_after < 0 END`,
  )
  return found.map(({ leaf, account }) =>
    leaf === null
      ? `${account} was on the wrong side`
      : `the postings of entry ${leaf} do not sum to zero`,
  )
}

/**
 * Checks the invariants once all payments are past their time: each claim is over, and all money that arrived is
 * booked.
 */
export async function checkSettled(
  market: Market,
  orders: readonly Order[],
  signIns: readonly SignInOrder[],
): Promise<string[]> {
  const { database } = market
  const bodies = await readBodies(database)
  const books = makeBooks(bodies)
  const claims = await database.query<Claim>(
    sql`SELECT identity, id, state, valid_before::int8, write_after FROM operations.claim`,
  )
  // The cost of a write that was not answered stays held until its buyer comes again, which all do in the end.
  if (claims.some(({ state, write_after }) => state === 'held' && write_after !== null)) return []
  const held = await database.query<{ id: string }>(sql`SELECT id FROM operations.account_hold`)
  return [
    ...(await checkLedger(database)),
    ...(await checkTables(database, books)),
    ...checkMoney(market, books),
    ...(await checkReversals(market, [...orders, ...signIns], books)),
    ...(await checkRestores(market, bodies)),
    ...checkAccounts(market, orders, books),
    ...claims.flatMap((claim) => checkClaim(market, claim, books)),
    ...held.map(({ id }) => `something is held for ${id} in the end`),
  ]
}

/** Checks the invariants of the end. */
export async function checkMarket(market: Market, happened: Happened): Promise<string[]> {
  const { acknowledged, takings, agents, named, refunds, channels, purchases } = happened
  const { signIns, settlements } = happened
  const { database } = market
  const books = makeBooks(await readBodies(database))
  const orders = [...happened.orders, ...listSoldOrders(purchases, books)]
  const matched = matchChannelSales(channels, books)
  const signed = matchSignIns(market, signIns, books)
  const bought: Bought[] = [
    ...[...orders, ...agents.flatMap(({ errands }) => errands)],
    ...channels.flatMap((one) => one.orders),
    ...signIns,
  ]
  const records = await readRecords(database)
  const held = await database.query<{ id: string }>(
    sql`SELECT id FROM operations.claim WHERE state = 'held'`,
  )
  const found = await database.query<{ id: string; amount: string }>(
    sql`SELECT id, amount::text AS amount FROM system.refund`,
  )
  return [
    ...held.map(({ id }) => `the claim ${id} stays held`),
    ...(await checkSettled(market, orders, signIns)),
    ...orders.flatMap((order) => checkOrder(market, order, books)),
    ...checkLibrary(
      new Map<string, Buying>([
        ...orders.flatMap((one): [string, Buying][] =>
          one.delivered === undefined ? [] : [[one.delivered.paymentId, one]],
        ),
        ...matched.orders,
        ...signed.orders,
      ]),
      {
        books,
        unsold: [
          ...listUnsold(orders, channels, new Set(matched.orders.values())),
          ...signIns.filter(({ delivered }) => delivered === undefined),
        ],
      },
    ),
    ...checkSales(market, bought, {
      books,
      lost: new Set([
        ...listSold(agents, books),
        ...matched.orders.keys(),
        ...signed.orders.keys(),
      ]),
    }),
    ...matched.problems,
    ...signed.problems,
    ...(await checkChannels(market, channels, { books, matched: matched.orders })),
    ...checkAgents(market, agents, books),
    // Answers are kept for a day.
    ...(market.hasStoodStill ? [] : await checkKept(database, bought, books)),
    ...(await checkReads(database, bought, books)),
    ...(await checkTransfers(market, takings, books)),
    ...checkNatives(market, orders, books),
    ...(await checkSettlements(market, settlements, books)),
    ...checkFees(market, books),
    ...checkRefunds(refunds, orders, {
      books,
      found: found.map(({ id, amount }) => `${id} ${amount}`),
    }),
    ...checkPurchases(purchases, books),
    ...checkRecords(records, bought, [...acknowledged, ...listNamedMarks(named)]),
    ...checkNamed(named, new Set(records.map(({ mark }) => mark))),
  ]
}

/** Lists the purchases that were begun, perhaps, and are in no books; a voucher that was only corrected begins none. */
function listUnsold(
  orders: readonly Order[],
  channels: readonly Channel[],
  sold: ReadonlySet<ChannelOrder>,
): Unsold[] {
  const byChannel = channels.flatMap((one) => one.orders)
  return [
    ...orders.filter(({ delivered }) => delivered === undefined),
    ...byChannel.filter((order) => order.isOpen && !sold.has(order)),
  ]
}

type Claim = {
  readonly identity: string
  readonly id: string
  readonly state: string
  readonly valid_before: bigint
  readonly write_after: bigint | null
}

async function checkTables(database: Database, books: Books): Promise<string[]> {
  const accounts = await database.query<{ account: string; balance: string }>(
    sql`SELECT account, balance FROM system.account`,
  )
  const deposits = await database.query<{ identity: string }>(
    sql`SELECT identity FROM system.settled_payment`,
  )
  const sales = await database.query<{ payment_id: string }>(
    sql`SELECT payment_id FROM system.sale`,
  )
  return [
    ...listDifferences('balances', {
      expected: [...books.balances].map(([account, balance]) => `${account} ${balance}`),
      found: accounts.map(({ account, balance }) => `${account} ${balance}`),
    }),
    ...listDifferences('deposits', {
      expected: [...books.deposits.keys()],
      found: deposits.map(({ identity }) => identity),
    }),
    ...listDifferences('sales', {
      expected: [...books.sales.keys()],
      found: sales.map((row) => row.payment_id),
    }),
  ]
}

/**
 * Checks that all money that arrived, and no other, is booked, once. Money that went to a seller's own wallet is booked
 * where it bought something; an authorization that a balance paid for, and that somebody handed in later, brings us
 * nothing.
 */
function checkMoney({ chain, remote }: Market, books: Books): string[] {
  const arrived = [chain, remote].flatMap((where) => {
    const { network } = where
    const toIdentity = (key: string) => `${network.id}/${network.asset.address}/${key}`
    const direct = where.allMovedElsewhere().filter((key) => books.deposits.has(toIdentity(key)))
    return [...where.allMoved(), ...direct].map((key) => {
      const [payer = '', nonce = ''] = key.split('/')
      return `${toIdentity(key)} ${where.moved(payer, nonce)?.value}`
    })
  })
  const booked = [...books.deposits].flatMap(([identity, { amount, payment_id: id }]) =>
    books.reversals.has(id) ? [] : [`${identity} ${amount}`],
  )
  return listDifferences('money that arrived', { expected: arrived, found: booked })
}

/**
 * The money of a payment that a balance was charged for may come until its end. A key, a sign-in or a channel has no
 * money of its own that may come: a purchase by it that could not be answered has failed, and may be tried again under
 * its name.
 */
function checkClaim({ scheduler }: Market, claim: Claim, books: Books): string[] {
  const { identity, id, state, valid_before } = claim
  const isDeposited = books.deposits.get(identity)?.payment_id === id
  const isFromBalance = books.sales.get(id)?.paid_from !== undefined
  const isEnded = Number(valid_before) * 1000 + endedForMs < scheduler.now
  const unsold = /^balance[/](key|sign-in)[/]|[/]channel:/.test(identity) ? 'failed' : 'void'
  const ends = isDeposited ? ['deposited', 'delivered'] : [isFromBalance ? 'delivered' : unsold]
  const isOver = ends.includes(state) || (state === 'sold' && !isEnded)
  return isOver ? [] : [`the claim ${id} of ${identity} stays ${state}`]
}

/** Reconciliation looks two minutes after a payment's end. */
const endedForMs = 180_000

/** Checks that the charge is the asked price for the delivered rows, and never above it. */
function checkOrder({ chain }: Market, order: Order, books: Books): string[] {
  const { delivered, kind, name, price, derive, isNews, libraryItem, isDirect } = order
  if (delivered === undefined) return []
  const sale = books.sales.get(delivered.paymentId)
  if (kind === 'deposit') return sale === undefined ? [] : [`${name} was sold, and only deposited`]
  if (sale === undefined) return [`${name} was delivered and never charged`]
  const charge = BigInt(sale.amount)
  const promised = (price - derive) / BigInt(order.rows)
  const isAstray = isDirect && !delivered.isFromBalance && sale.paid_to === undefined
  if (isAstray || (sale.paid_to !== undefined && (!isDirect || sale.paid_to !== pressWallet)))
    return [`${name} was paid to ${order.network.payTo}, and its sale says ${sale.paid_to}`]
  const moved = chain.listMoves(order.payer, order.nonce).at(-1)?.value ?? 0n
  const amount = order.isUpto ? moved : order.amount
  const least = charge < smallestPayment ? smallestPayment : charge
  if (order.isUpto && moved !== (charge === 0n ? 0n : least))
    return [`${name} cost ${charge}, and ${moved} was taken`]
  if (libraryItem !== undefined)
    return charge <= price ? [] : [`${name} was charged ${charge}, above its quote ${price}`]
  if (isNews) return charge === price ? [] : [`${name} was charged ${charge} for news`]
  const count = BigInt(sale.row_count)
  const ofShelf = isOfResult(order.shelf) ? samplePrice * count : price
  const due = order.shelf === undefined ? derive + promised * count : ofShelf
  // Without a quote, of the prices that asked for the same smallest payment the lowest one counts.
  const isLowest = order.quoteId === undefined && price < amount
  const hash = createHash('sha256').update(delivered.text).digest('hex')
  return [
    ...(charge > price ? [`${name} was charged ${charge}, above its quote ${price}`] : []),
    ...(charge === due || (isLowest && charge < due)
      ? []
      : [`${name} was charged ${charge} for ${sale.row_count} of ${promised} each`]),
    ...(BigInt(sale.deposited) === (delivered.isFromBalance ? 0n : amount)
      ? []
      : [`${name} was booked with ${sale.deposited}, not ${amount}`]),
    ...(sale.result_hash === hash ? [] : [`${name} was charged for another answer than it got`]),
  ]
}

type Stored = { readonly mark: string; readonly payment: string | undefined }

/** Acknowledged records are there once; paid records are written once. */
function checkRecords(
  records: readonly Stored[],
  orders: readonly Bought[],
  acknowledged: readonly Acknowledged[],
): string[] {
  const counts = new Map<string, number>()
  for (const { mark } of records) counts.set(mark, (counts.get(mark) ?? 0) + 1)
  const lost = acknowledged.filter(({ mark }) => counts.get(mark) !== 1)
  const payments = records.flatMap(({ payment }) => payment ?? [])
  const twice = payments.filter((payment, at) => payments.indexOf(payment) !== at)
  const missing = orders.filter(
    ({ kind, delivered, name, rows }) =>
      kind === 'write' &&
      delivered !== undefined &&
      Array.from({ length: rows }, (_, at) => counts.get(`${name}/${at}`)).some((n) => n !== 1),
  )
  return [
    ...lost.map(
      ({ mark }) => `the acknowledged record ${mark} is there ${counts.get(mark) ?? 0} times`,
    ),
    ...twice.map((payment) => `the payment ${payment} wrote twice`),
    ...missing.map(({ name }) => `${name} was delivered and its records are not there once`),
  ]
}

async function readRecords(database: Database): Promise<Stored[]> {
  const entries = await readEntries(database, applicationSchema)
  return entries
    .filter(({ type }) => type === 'record')
    .map(({ header, body }) => ({
      mark: String(JSON.parse(body).mark),
      payment: header.payment === undefined ? undefined : String(header.payment),
    }))
}
