import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { Books } from './books.ts'
import type { Market } from './market.ts'
import type { SettlementOrder } from './settlement-order.ts'
import { facilitatorSettings, foundedMs } from './shop.ts'

const dayMs = 24 * 3_600_000

/**
 * Checks that the service sent each payment to another server at most once, and none that was used before; that what it
 * said of it is what the chain has; that it kept its bounds; and that its own books know nothing of any.
 */
export async function checkSettlements(
  market: Market,
  orders: readonly SettlementOrder[],
  books: Books,
): Promise<string[]> {
  return [
    ...orders.flatMap((order) => checkSettlement(market, order)),
    ...checkBounds(market, orders),
    ...(await checkUnbooked(market.database, orders, books)),
  ]
}

function checkSettlement(market: Market, order: SettlementOrder): string[] {
  const { chain, started, subjects } = market
  const { name, payer, nonce, value, server, told, failure } = order
  const sent = chain.countSent(payer, nonce)
  const moves = chain.listMoves(payer, nonce)
  const isOurs = chain.moved(payer, nonce)?.by === 'us'
  const isStable = !subjects.has('reversals')
  const isHeard = !order.isUnheard && order.startedFirst === started && isUncopied(order)
  return [
    ...(sent > 1 ? [`${name} was sent ${sent} times`] : []),
    ...(sent > 0 && order.isUsedBefore && isStable ? [`${name} was used before, and sent`] : []),
    ...moves.flatMap((one) =>
      one.to === server.payTo && one.value === value
        ? []
        : [`${name} moved ${one.value} to ${one.to}, and not ${value} to ${server.payTo}`],
    ),
    ...told.flatMap((hash) =>
      moves.some((one) => one.hash === hash) ? [] : [`${name} was settled by ${hash}: it is not`],
    ),
    ...(failure !== undefined && isOurs && isStable
      ? [`${name} was called ${failure}, and the service moved its money`]
      : []),
    ...(told.length === 0 && isOurs && isHeard && isStable
      ? [`${name} was settled, and its server was never told`]
      : []),
  ]
}

/** Says that nobody but its own server asked for it. */
function isUncopied({ callers, server }: SettlementOrder): boolean {
  return callers.every((one) => one === server.name)
}

/** Each process counts for itself, and anew each day. */
function checkBounds(market: Market, orders: readonly SettlementOrder[]): string[] {
  const { chain, scheduler, started } = market
  const isOneDay = Math.floor(scheduler.now / dayMs) === Math.floor(foundedMs / dayMs)
  if (!isOneDay) return []
  const { settlementsPerDay, allSettlementsPerDay } = facilitatorSettings
  const sent = orders.filter(({ payer, nonce }) => chain.countSent(payer, nonce) > 0)
  const counts = new Map<string, number>()
  // Where several asked, nobody knows whose allowance it took.
  for (const { askers } of sent)
    for (const asker of askers.size === 1 ? askers : [])
      counts.set(asker, (counts.get(asker) ?? 0) + 1)
  return [
    ...[...counts].flatMap(([asker, count]) =>
      count > settlementsPerDay ? [`${count} payments were sent in a day for ${asker}`] : [],
    ),
    ...(sent.length > allSettlementsPerDay * started
      ? [`${sent.length} payments were sent in a day`]
      : []),
  ]
}

async function checkUnbooked(
  database: Database,
  orders: readonly SettlementOrder[],
  { deposits, balances }: Books,
): Promise<string[]> {
  const payers = [...new Set(orders.map(({ payer }) => payer))]
  const claims = await database.query<{ identity: string }>(
    sql`SELECT identity FROM operations.claim WHERE split_part(identity, '/', 3) = ANY(${payers})`,
  )
  return [
    ...claims.map(({ identity }) => `${identity} is of another server, and claimed`),
    ...[...deposits.keys()].flatMap((identity) =>
      payers.includes(identity.split('/')[2] ?? '')
        ? [`${identity} is of another server, and booked`]
        : [],
    ),
    ...payers.flatMap((payer) =>
      balances.has(`wallet:${payer}`) ? [`${payer} paid another server, and has a balance`] : [],
    ),
  ]
}
