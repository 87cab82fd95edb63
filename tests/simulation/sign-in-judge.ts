import type { Market } from './market.ts'
import type { Answer } from './send-request.ts'
import { mayBeDear, type SignIn, type SignInOrder } from './sign-in-order.ts'

const triesMax = 12
const givesUpPerMille = 150

/** The state of things when a request was sent. */
type Before = {
  readonly ms: number
  readonly wasDelivered: boolean
}

type Try = { readonly signIn: SignIn; readonly answer: Answer; readonly before: Before }

/** Tries until an answer settles the outcome, or the buyer gives up. */
export async function persist(market: Market, order: SignInOrder, signIn: SignIn): Promise<void> {
  const { chance, scheduler } = market
  for (let n = 0; n < triesMax; n++) {
    if (await attempt(market, order, signIn)) return
    if (market.isRough && chance.happens(`${order.name} gives up`, givesUpPerMille)) return
    await scheduler.sleep(chance.between(`${order.name} pauses`, 500, 8_000))
  }
}

/** Sends the request with a sign-in and checks the answer; true where nothing is open any more. */
export async function attempt(
  market: Market,
  order: SignInOrder,
  signIn: SignIn,
): Promise<boolean> {
  const { name, asked, own, delivered } = order
  const wasDelivered = delivered !== undefined
  const before = { ms: market.scheduler.now, wasDelivered }
  signIn.sent += 1
  const answer = await market.send(name, asked, { headers: { ...own, ...signIn.headers } })
  if (answer === undefined || answer.status >= 500) return false
  if (answer.code === 'REQUEST_IN_PROGRESS') return false
  if (answer.status < 300) judgeDelivery(market, order, { signIn, answer, before })
  else if (answer.status === 402) judgeRefusal(market, order, { signIn, answer, before })
  // A write is done under its name, and who has no good sign-in for it any more is told no more than that.
  else if (answer.code !== 'ANSWER_LOST' || market.scheduler.now <= signIn.endsMs)
    market.wrong(
      `${name}: an honest sign-in was answered ${answer.status} ${answer.code} ${answer.text}`,
    )
  return true
}

/** Checks that the answer is the same every time, that the balance of the wallet paid, and that the sign-in was good. */
function judgeDelivery(market: Market, order: SignInOrder, { signIn, answer, before }: Try): void {
  const { name, kind, isNamed, payer } = order
  const { text, headers } = answer
  const paymentId = String(headers['x-payment-id'])
  const header = headers['payment-response'] ?? ''
  const notice = JSON.parse(Buffer.from(header, 'base64').toString() || '{}')
  if (notice.paid_from !== 'balance' || notice.payer !== payer)
    market.wrong(`${name} signed in, and was told that it was paid by ${JSON.stringify(notice)}`)
  order.deliveredStep ??= market.step()
  order.delivered ??= { text, paymentId, isFromBalance: true }
  if (order.delivered.text !== text)
    market.wrong(`${name} was answered ${text} and before ${order.delivered.text}`)
  if (order.delivered.paymentId !== paymentId)
    market.wrong(`${name} has two payments: ${paymentId} and ${order.delivered.paymentId}`)
  // A named write is answered by the name alone to who may write.
  if (kind === 'write' && isNamed) return
  signIn.isTaken = true
  if (before.ms > signIn.endsMs) market.wrong(`${name} was bought by a sign-in that was over`)
}

/**
 * Checks that each refusal has its reason, and that what was bought once is answered again. A sign-in for one payment is
 * never told that it was used, however often it is sent.
 */
function judgeRefusal(market: Market, order: SignInOrder, { signIn, answer, before }: Try): void {
  const { name } = order
  const { error } = JSON.parse(answer.text)
  const isOver = market.scheduler.now > signIn.endsMs
  if (before.wasDelivered && !isOver)
    market.wrong(`${name} was bought, and refused when it was sent again: ${error}`)
  const isDue =
    (error.includes('it is over') && isOver) ||
    (error.includes('The sign-in was for at most') && mayBeDear(market, order, signIn)) ||
    // That the balance had less is seen in the ledger, and in the end.
    error.includes(`The balance of ${order.payer} is lower than`)
  if (!isDue) market.wrong(`${name}: an honest sign-in was refused: ${error}`)
}
