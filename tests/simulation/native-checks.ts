import type { Books } from './books.ts'
import type { Market } from './market.ts'
import type { Order } from './order.ts'

/**
 * Checks that each transfer that a payer made itself is booked once it was brought; that the money which is worth the gas
 * has left its address for the service's own, once, and the rest is still there; and that the service's addresses have
 * what its ledger says came in and did not go out.
 */
export function checkNatives(market: Market, orders: readonly Order[], books: Books): string[] {
  const { chain } = market
  const natives = orders.filter((one) => one.depositAddress !== undefined && isMoved(market, one))
  const places = natives.flatMap((order) => {
    const { name, amount } = order
    if (!isBooked(order, books)) return [`${name} was brought, and is not booked`]
    const left = readLeft(market, order)
    const expected = isWorthGas(market, order) ? 0n : amount
    return left === expected ? [] : [`${name} has ${left} at its address, and not ${expected}`]
  })
  const waiting = natives.reduce((sum, order) => sum + readLeft(market, order), 0n)
  const booked = -(books.balances.get(`outside:${chain.network.id}`) ?? 0n)
  const there = chain.earned + waiting
  return booked === there
    ? places
    : [...places, `the chain gives the service ${there}, and its ledger says ${booked}`]
}

/** Says that a transfer's money is to be at the service's own address by now. */
export function isUnswept(market: Market, order: Order): boolean {
  return (
    order.depositAddress !== undefined &&
    isMoved(market, order) &&
    isWorthGas(market, order) &&
    readLeft(market, order) > 0n
  )
}

function isMoved({ chain }: Market, { payer, nonce }: Order): boolean {
  return chain.moved(payer, nonce) !== undefined
}

function isWorthGas({ chain }: Market, { amount }: Order): boolean {
  return amount >= chain.network.sweepMinimum
}

function readLeft({ chain }: Market, { depositAddress = '' }: Order): bigint {
  return chain.readDeposited(depositAddress) ?? 0n
}

function isBooked({ network, payer, nonce }: Order, books: Books): boolean {
  return books.deposits.has(`${network.id}/${network.asset.address}/${payer}/${nonce}`)
}
