import type { Market } from './market.ts'
import { isTooSmall, isUnmatched, type Order } from './order.ts'
import type { Answer } from './send-request.ts'
import { otherNetwork } from './shop.ts'

/** Finds the reason for which an answer says that nothing was bought. */
export function findRefusal(order: Order, answer: Answer): string | undefined {
  if (answer.status === 402) return answer.text.slice(0, 200)
  if (order.kind !== 'deposit' || answer.status !== 200) return undefined
  const { success, errorReason } = JSON.parse(answer.text)
  return success === true ? undefined : String(errorReason)
}

/**
 * Says where the money of an order is: moved by the service itself, or by the payer to its quote's address; possibly about
 * to be moved by the service; or neither.
 */
export function standing(market: Market, order: Order): 'moved' | 'under way' | 'open' {
  const { payer, nonce, network, depositAddress } = order
  const { chain, remote } = market
  // A chain that takes back more may have it and not have it meanwhile.
  if (depositAddress !== undefined && !market.subjects.has('reversals'))
    return chain.wasConfirmed(payer, nonce) && !isUnmatched(order) ? 'moved' : 'open'
  // A facilitator that refuses one process may have done what another one asked.
  if (network.id === otherNetwork.id)
    return remote.moved(payer, nonce) !== undefined && !remote.hasRefused(payer, nonce)
      ? 'moved'
      : 'open'
  if (chain.moved(payer, nonce)?.by === 'us') return 'moved'
  // The service knew that it had failed; that it is on its way again, it learns by its next look.
  if (chain.hasFailedOnce(payer, nonce)) return 'open'
  return chain.isPooled(payer, nonce) ? 'under way' : 'open'
}

/** Checks that there is never a new 402 for money that moved or may still move, unless it was spent since. */
export function judgeRefusal(
  market: Market,
  order: Order,
  found: { at: ReturnType<typeof standing>; refusal: string },
): void {
  const { shelf, libraryItem, isNews, signedStep, rows, price, name } = order
  const isPlain = shelf === undefined && libraryItem === undefined && !isNews
  const isOfOldPrice = market.prices.since(signedStep).every((one) => one * BigInt(rows) === price)
  if (found.refusal.includes('its price was promised') && isPlain && isOfOldPrice)
    market.wrong(`${name} was refused for a new price, and there is none`)
  if (found.at !== 'open' && !order.isSpent)
    market.wrong(`${order.name} was refused while its money is ${found.at}: ${found.refusal}`)
}

/** Checks that an answer which says that money is held, or was, is about money from before a restore that bought nothing. */
export function judgeHeld(market: Market, order: Order): void {
  const { name, payer, nonce, network, delivered, depositAddress } = order
  const { chain, restores, subjects } = market
  const restored = restores.at(-1)
  if (restored === undefined || network.id !== chain.network.id)
    market.wrong(`${name} is held, and its network was not restored`)
  if (delivered !== undefined) market.wrong(`${name} is held, and was delivered before`)
  // Such a transfer is its payer's balance once it is released, and buys nothing by itself.
  if (depositAddress !== undefined) order.isOvertaken = true
  const { seconds = 0 } = chain.moved(payer, nonce) ?? {}
  // A chain that takes back more may have it in another block by now.
  if (!subjects.has('reversals') && seconds > (restored?.seconds ?? 0))
    market.wrong(`${name} is held, and its money came since the restore`)
}

/** Checks that there is no data without money, and that the answer is the same every time. */
export function judgeDelivery(market: Market, order: Order, answer: Answer): void {
  const { payer, nonce, network } = order
  const isFromBalance = readsFromBalance(answer)
  if (isFromBalance && order.isBalanceOff)
    market.wrong(`${order.name} was paid from a balance, and asked for something else`)
  if (isTooSmall(order)) market.wrong(`${order.name} was taken, and is too small a deposit`)
  if (isUnmatched(order)) market.wrong(`${order.name} bought something, though it was used before`)
  // That the balance had it is seen in the ledger: nobody is in debt.
  if (isFromBalance) market.scheduler.note(`${order.name} was paid from the balance of ${payer}`)
  else if (network.id === otherNetwork.id) {
    const moved = market.remote.moved(payer, nonce)
    if (moved === undefined) market.wrong(`${order.name} was delivered and never paid`)
    else market.remote.isKnown(moved.hash)
  } else {
    const { chain } = market
    if (!chain.wasConfirmed(payer, nonce)) {
      const { depth = 0 } = chain.moved(payer, nonce) ?? {}
      market.wrong(`${order.name} was delivered before its money was there (${depth} blocks)`)
    }
  }
  const paymentId =
    order.kind === 'deposit' ? JSON.parse(answer.text).payment_id : answer.headers['x-payment-id']
  order.deliveredStep ??= market.step()
  order.delivered ??= { text: answer.text, paymentId: String(paymentId), isFromBalance }
  if (order.delivered.isFromBalance !== isFromBalance)
    market.wrong(`${order.name} was told otherwise how it was paid`)
  if (order.delivered.text !== answer.text)
    market.wrong(`${order.name} was answered ${answer.text} and before ${order.delivered.text}`)
  if (order.delivered.paymentId !== paymentId)
    market.wrong(`${order.name} has two payments: ${paymentId} and ${order.delivered.paymentId}`)
}

/** Reads how the answer says it was paid. */
function readsFromBalance({ headers }: Answer): boolean {
  const header = headers['payment-response'] ?? headers['x-payment-response']
  // Clients that make a transfer themselves read it as it is.
  if (header === undefined || header.startsWith('{')) return false
  return JSON.parse(Buffer.from(header, 'base64').toString()).paid_from === 'balance'
}
