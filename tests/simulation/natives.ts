import { requestOrder } from './make-order.ts'
import type { Market } from './market.ts'
import { isUnswept } from './native-checks.ts'
import { base64, type Order } from './order.ts'
import { attempt, persist } from './orders.ts'
import { makeDepositRequest, makeListRequest } from './requests.ts'
import { oftenMs } from './shop.ts'

const buyersMax = 2
/** A round of sweeps, and its block as deep as the service waits for. */
const roundMs = oftenMs + 12_000
const lastRounds = 8

/**
 * Buyers send the money themselves to the address of their quote, some of it too little, and bring the transaction's hash
 * before its block is deep enough; they send twice and lose answers. Somebody who sees all that the chain has tries to buy
 * with their hashes, and with the sweeps of their money.
 */
export async function payByTransfers(market: Market, orders: Order[]): Promise<void> {
  const { chance, scheduler } = market
  const count = chance.between('payers by transfer', 1, buyersMax)
  const running = Array.from({ length: count }, async (_, at) => {
    const who = `n${at + 1}`
    const times = chance.between(`${who} buys`, 1, 4)
    for (let n = 0; n < times; n++) {
      await scheduler.sleep(chance.between(`${who} thinks`, 0, 6_000))
      await buy(market, orders, { who, n })
    }
  })
  await Promise.all(running)
}

async function buy(
  market: Market,
  orders: Order[],
  { who, n }: { readonly who: string; readonly n: number },
): Promise<void> {
  const { chance, scheduler } = market
  const order = await requestOrder(market, who, { n, isNative: true })
  if (order === undefined) return
  orders.push(order)
  const { name } = order
  if (chance.happens(`${name} is put off`, 500))
    await scheduler.sleep(chance.between(`${name} is put off for`, 0, 30_000))
  const tries = [0, ...(chance.happens(`${name} is sent twice`, 350) ? [1, 2] : [])]
  await Promise.all(tries.map(() => persist(market, order)))
  if (chance.happens(`${name} is stolen`, 500)) await steal(market, order)
  if (chance.happens(`${name} is asked again`, 500)) await attempt(market, order)
  if (chance.happens(`${name} is copied`, 700)) await copySweeps(market, order)
}

/** Uses a transfer for what its quote is not for, without its quote, and with another one: it buys nothing. */
async function steal(market: Market, order: Order): Promise<void> {
  const { headers, asked, rows, kind, name } = order
  if (kind !== 'read') return
  const { quoteId, ...proof } = JSON.parse(
    Buffer.from(headers['x-payment'] ?? '', 'base64').toString(),
  )
  const answer = await market.send(`${name} thief`, asked, { headers: {} })
  const other = answer?.status === 402 ? JSON.parse(answer.text).accepts[0].extra.quoteId : ''
  for (const [what, sent] of [
    [makeListRequest(rows + 1), { ...proof, quoteId }],
    [asked, { ...proof, quoteId: '' }],
    [asked, { ...proof, quoteId: other }],
  ] as const) {
    const stolen = await market.send(`${name} stolen`, what, {
      headers: { 'x-payment': base64(sent) },
    })
    if (stolen !== undefined && stolen.status < 300)
      market.wrong(`${name}: a transfer bought what it was not made for: ${stolen.text}`)
  }
}

/** Brings the sweeps that the chain shows as payments, for a request that costs as much and for a balance. */
async function copySweeps(market: Market, order: Order): Promise<void> {
  const { chain, chance, scheduler } = market
  const { name, asked, kind } = order
  await scheduler.sleep(chance.between(`${name} is copied after`, 0, roundMs))
  for (const payload of chain.listSweeps()) {
    const { v1Name } = chain.network
    const copy = { x402Version: 1, scheme: 'exact', network: v1Name, payload }
    const requests = [makeDepositRequest(copy), ...(kind === 'read' ? [asked] : [])]
    for (const what of requests) {
      const isDeposit = what !== asked
      const headers = isDeposit ? {} : { 'x-payment': base64(copy) }
      const answer = await market.send(`${name} copied`, what, { headers })
      const isTaken = answer?.status === 200 && JSON.parse(answer.text).success !== false
      if (isTaken) market.wrong(`${name}: a sweep counted as a payment: ${answer.text}`)
    }
  }
}

/** Waits until all money that is worth the gas has left its address. */
export async function finishSweeps(market: Market, orders: readonly Order[]): Promise<void> {
  for (let n = 0; n < lastRounds && orders.some((one) => isUnswept(market, one)); n++)
    await market.scheduler.sleep(roundMs)
}
