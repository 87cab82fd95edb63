import { type Body, type Books, listDifferences } from './books.ts'
import { isExhibit } from './exhibits.ts'
import { library } from './library.ts'
import type { Market } from './market.ts'
import type { Order } from './order.ts'
import { makeRefundRequest } from './requests.ts'
import type { Answer } from './send-request.ts'
import { application, supplier } from './shop.ts'

/** A refund that a seller asks for, as it knows of it. */
export type Refunding = {
  readonly name: string
  /** The seller whose part of the sale is given back. */
  readonly app: typeof application | typeof supplier | typeof library
  readonly paymentId: string
  /** The amount that was asked for; undefined where it is all that the seller's part cost. */
  readonly amount: bigint | undefined
  /** The amount that the service said it gave back. */
  told: bigint | undefined
  /** Says that the service called it more than was sold. */
  isTooMuch: boolean
  /** The payment that the service called reversed: that of the sale, or one that the balance had which paid for it. */
  reversed: string | undefined
}

const reversedText =
  /payment of the sale (pay_\w+) was reversed|had the payment (pay_\w+), which was lost/
const triesMax = 15

/** The sellers give back what some sales cost, or a part of it, or try to give back more, until told to stop. */
export async function giveBack(
  market: Market,
  { orders, refunds }: { readonly orders: readonly Order[]; readonly refunds: Refunding[] },
  isOver: () => boolean,
): Promise<void> {
  const { chance, scheduler } = market
  for (let n = 0; !isOver(); n++) {
    await scheduler.sleep(chance.between('refunder waits', 1_000, 15_000))
    const sold = orders.filter((one) => one.kind !== 'deposit' && isOfThem(one) && one.delivered)
    if (sold.length === 0) continue
    const known = sold.filter((one) => refunds.some((other) => isOf(other, one)))
    // Two amounts for one sale, of which the first counts, would seldom meet by chance alone.
    const isSecond = known.length > 0 && chance.happens('refunder comes back to a sale', 300)
    const order = chance.pick('refunder picks', isSecond ? known : sold)
    const refunding = makeRefunding(market, order, n)
    refunds.push(refunding)
    const tries = chance.happens('refunder asks twice at once', 400) ? [0, 1] : [0]
    await Promise.all(tries.map(() => persist(market, { refunding, refunds })))
    const earlier = chance.pick('refunder picks again', refunds)
    if (chance.happens('refunder asks again', 400))
      await persist(market, { refunding: earlier, refunds })
  }
}

/** In the end some refunds are asked for once more; the service brings the others to their end by itself. */
export async function finishRefunds(market: Market, refunds: readonly Refunding[]): Promise<void> {
  for (const refunding of refunds)
    if (market.chance.happens('refunder asks in the end', 500))
      await persist(market, { refunding, refunds })
}

function makeRefunding(market: Market, order: Order, n: number): Refunding {
  const { chance } = market
  const isOfSupplier = order.isJoin && chance.happens('refunder is the supplier', 400)
  const most = isOfSupplier ? order.derive : order.price - order.derive
  const isOfLibrary = isExhibit(order.libraryItem)
  // A free one has nothing to give back.
  const isAll = chance.happens('refunder gives back all', 400) && !isOfLibrary
  const part = BigInt(chance.between('refunder gives back', 1, Number(most) * 2))
  return {
    name: `refund ${n} of ${order.name}`,
    app: isOfLibrary ? library : isOfSupplier ? supplier : application,
    paymentId: order.delivered?.paymentId ?? '',
    amount: isAll ? undefined : part,
    told: undefined,
    isTooMuch: false,
    reversed: undefined,
  }
}

type Asking = { readonly refunding: Refunding; readonly refunds: readonly Refunding[] }

/** Asks until an answer says what becomes of it. */
async function persist(market: Market, { refunding, refunds }: Asking): Promise<void> {
  const { chance, scheduler, keys } = market
  const { name, app, paymentId, amount } = refunding
  const asked = makeRefundRequest(app, { paymentId, amount })
  const { appKey, supplierKey, libraryKey } = keys
  const own = { [application]: appKey, [supplier]: supplierKey, [library]: libraryKey }
  const headers = { 'x-app-key': own[app] }
  for (let n = 0; n < triesMax; n++) {
    const answer = await market.send(name, asked, { headers })
    if (answer !== undefined && judge(market, { refunding, refunds }, answer)) return
    await scheduler.sleep(chance.between(`${name} pauses`, 500, 8_000))
  }
}

/** Checks an answer; true where it is final. */
function judge(
  market: Market,
  { refunding, refunds }: Asking,
  { status, text, code }: Answer,
): boolean {
  if (status >= 500) return false
  const { name, app, paymentId, amount, told } = refunding
  if (status < 300) {
    const said = BigInt(JSON.parse(text).amount)
    if (said !== (told ?? amount ?? said))
      market.wrong(`${name} of ${amount} is told to be ${text}`)
    if (refunding.isTooMuch) market.wrong(`${name} was too much, and then ${text}`)
    refunding.told = said
    return true
  }
  if (told !== undefined) market.wrong(`${name} is made, and then ${status} ${text}`)
  // Two amounts for one sale: the first of them counts.
  const isOther = refunds.some(
    (one) =>
      one !== refunding && one.app === app && one.paymentId === paymentId && one.amount !== amount,
  )
  refunding.isTooMuch ||= code === 'VALIDATION_FAILED' && amount !== undefined
  const [, own, other] = (code === 'CONFLICT' && reversedText.exec(text)) || []
  refunding.reversed ??= own ?? other
  const isReorganized = market.isRough || market.subjects.has('reversals')
  const isGone =
    text.includes('does not have the payment') ||
    (market.subjects.has('channels') && text.includes('is taking back what it was charged')) ||
    (isReorganized && text.includes('has less on its network at this moment'))
  const isUnpaid = code === 'CONFLICT' && (isGone || (own ?? other) !== undefined)
  const isDue = isUnpaid || (code === 'CONFLICT' && isOther) || code === 'BALANCE_TOO_LOW'
  if (!isDue && !refunding.isTooMuch) market.wrong(`${name} was answered ${status} ${code} ${text}`)
  return true
}

/**
 * Checks that each refund in the books was asked for, once for each seller of a sale, and is at most what its part of
 * the sale cost; that all that was told is there; that what was called too much is more than was sold; and that what was
 * called reversed is.
 */
export function checkRefunds(
  refunds: readonly Refunding[],
  orders: readonly Order[],
  { books, found }: { readonly books: Books; readonly found: readonly string[] },
): string[] {
  const derives = new Map(orders.map(({ delivered, derive }) => [delivered?.paymentId, derive]))
  const findSold = ({ app, paymentId }: Pick<Refunding, 'app' | 'paymentId'>): bigint => {
    const derive = derives.get(paymentId) ?? 0n
    return app === supplier ? derive : BigInt(books.sales.get(paymentId)?.amount ?? 0) - derive
  }
  const booked = [...books.refunds.values()]
  const isAsked = ({ app, sale, amount }: Body) =>
    refunds.some(
      (one) =>
        one.app === app &&
        one.paymentId === sale &&
        (one.amount ?? findSold(one)) === BigInt(amount),
    )
  return [
    ...listDifferences('refunds', {
      expected: booked.map(({ payment_id: id, amount }) => `${id} ${amount}`),
      found,
    }),
    ...booked.flatMap((body) =>
      isAsked(body) ? [] : [`nobody asked for the refund ${body.payment_id} of ${body.amount}`],
    ),
    ...refunds.flatMap((one) => {
      const { name, app, paymentId, amount, told, isTooMuch, reversed } = one
      const sold = findSold(one)
      const body = booked.find((each) => each.sale === paymentId && each.app === app)
      return [
        ...((told ?? 0n) > sold ? [`${name} gave back ${told}, and ${sold} was sold`] : []),
        ...(isTooMuch && (amount ?? 0n) <= sold
          ? [`${name} was refused, and ${sold} was sold`]
          : []),
        ...(reversed !== undefined && !books.reversals.has(reversed)
          ? [`${name} was refused, and ${reversed} is not reversed`]
          : []),
        ...(told !== undefined && body?.amount !== String(told)
          ? [`${name} was told to be ${told}, and the books say ${body?.amount}`]
          : []),
      ]
    }),
  ]
}

function isOf({ paymentId }: Refunding, { delivered }: Order): boolean {
  return paymentId === delivered?.paymentId
}

function isOfThem({ isNews, libraryItem }: Order): boolean {
  return !isNews && (libraryItem === undefined || isExhibit(libraryItem))
}
