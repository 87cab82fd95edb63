import type { Channel, ChannelOrder } from './channel-order.ts'
import { readChannel } from './escrow-model.ts'
import { type ChannelEntry, readOffer, signRefund, type Wanted } from './make-channel-order.ts'
import type { Market } from './market.ts'
import type { Answer } from './send-request.ts'
import { signVoucher } from './vouchers.ts'

const triesMax = 12
const givesUpPerMille = 150
const prefix = 'invalid_batch_settlement_evm_'
const mismatch = `${prefix}cumulative_amount_mismatch`
/** A deposit that the token does not take. */
const depositFailed = `${prefix}deposit_simulation_failed`
/** A deposit whose authorization has ended, or is about to. */
const depositOver = `${prefix}payload_authorization_valid_before`

/** The outcome of a try: nothing that is certain, an end, or news of the channel with a new offer. */
type Outcome = 'again' | 'over' | { readonly corrected: Wanted }

/** Tries until an answer says what became of it, or the buyer gives up. */
export async function persistByChannel(
  market: Market,
  order: ChannelOrder,
  wanted: Wanted,
): Promise<Exclude<Outcome, 'again'>> {
  const { chance, scheduler } = market
  for (let n = 0; n < triesMax; n++) {
    const outcome = await attemptByChannel(market, order, wanted)
    if (outcome !== 'again') return outcome
    if (market.isRough && chance.happens(`${order.name} gives up`, givesUpPerMille)) return 'over'
    await scheduler.sleep(chance.between(`${order.name} pauses`, 500, 8_000))
  }
  return 'over'
}

/** Sends one request with the voucher and checks the answer. */
export async function attemptByChannel(
  market: Market,
  order: ChannelOrder,
  wanted: Wanted,
): Promise<Outcome> {
  const { name, asked, headers } = order
  const step = market.step()
  const answer = await market.send(name, asked, { headers })
  if (answer === undefined) {
    order.isOpen = true
    return 'again'
  }
  if (answer.status < 300) {
    judgeBought(market, order, answer)
    return 'over'
  }
  if (answer.status === 402) return judgeAsked(market, order, { answer, wanted, step })
  noteFailure(market, order, answer)
  order.isOpen = true
  return 'again'
}

type Notice = {
  readonly success: boolean
  readonly amount: string
  readonly extra: {
    readonly chargedAmount?: string
    readonly channelState: { readonly chargedCumulativeAmount: string }
  }
}

function readNotice({ headers }: Answer): Notice | undefined {
  const header = headers['payment-response']
  return header === undefined ? undefined : JSON.parse(Buffer.from(header, 'base64').toString())
}

/** Checks that it is charged by what it was signed for, and that the answer is the same every time. */
function judgeBought(market: Market, order: ChannelOrder, answer: Answer): void {
  const { name, channel, base, price } = order
  const notice = readNotice(answer)
  const charge = BigInt(notice?.extra.chargedAmount ?? -1)
  const total = BigInt(notice?.extra.channelState.chargedCumulativeAmount ?? -1)
  if (notice === undefined || charge < 0n || charge > price || total !== base + charge)
    market.wrong(`${name} was signed for ${price} after ${base}, and charged ${charge} to ${total}`)
  const paymentId = String(answer.headers['x-payment-id'])
  order.deliveredStep ??= market.step()
  // A voucher that was charged nothing is as good as new.
  if (order.charge === 0n) order.delivered = undefined
  order.charge = order.delivered === undefined ? charge : order.charge
  order.delivered ??= { text: answer.text, paymentId, isFromBalance: false }
  const { delivered } = order
  if (
    delivered.text !== answer.text ||
    delivered.paymentId !== paymentId ||
    order.charge !== charge
  )
    market.wrong(`${name} was ${paymentId} for ${charge}, and before ${delivered.paymentId}`)
  noteDeposit(order, notice)
  if (total > channel.charged) channel.charged = total
}

/** A deposit counts for the client where it is told of it, whatever else the answer says. */
function noteDeposit(order: ChannelOrder, notice: Notice | undefined): void {
  if (notice === undefined || notice.amount === '' || order.isDepositTold) return
  order.isDepositTold = true
  order.channel.balance += order.deposit
}

/** An error costs nothing, and says so where it comes after a deposit. */
function noteFailure(market: Market, order: ChannelOrder, answer: Answer): void {
  const { name } = order
  const notice = readNotice(answer)
  if (notice?.extra.chargedAmount !== undefined && notice.extra.chargedAmount !== '0')
    market.wrong(`${name} failed and was charged ${notice.extra.chargedAmount}`)
  noteDeposit(order, notice)
  const { status, code, text } = answer
  if (status !== 503 && status !== 500 && code !== 'REQUEST_IN_PROGRESS')
    market.wrong(`${name}: an honest try was answered ${status} ${code} ${text}`)
}

/** Checks a 402: it must be a true correction, or for a deposit that the token does not take. */
function judgeAsked(
  market: Market,
  order: ChannelOrder,
  given: { readonly answer: Answer; readonly wanted: Wanted; readonly step: number },
): Outcome {
  const { name, channel, deposit, delivered } = order
  const offer = readOffer(market, given.wanted, given)
  if (offer === undefined) return 'over'
  const { wanted, error } = offer
  // A transaction that a replaced block reverted is not looked for again, and its client deposits anew.
  const isFailedDeposit =
    deposit > 0n &&
    (error.startsWith(depositFailed)
      ? market.isRough || market.subjects.has('reversals') || !isDeposited(market, order)
      : error.startsWith(depositOver) && market.scheduler.now > order.depositEndsMs)
  const isGone = channel.isWithdrawing && error.startsWith(`${prefix}cumulative_exceeds_balance`)
  if (isFailedDeposit || isGone) return 'over'
  if (!error.startsWith(mismatch)) {
    market.wrong(`${name} was refused: ${error}`)
    return 'over'
  }
  if (delivered !== undefined && !hasFollower(order))
    market.wrong(`${name} was delivered, and is now asked to be paid`)
  judgeCorrection(market, channel, { entry: wanted.entry, order })
  return { corrected: wanted }
}

/** The token knows the authorization of the deposit. */
function isDeposited({ chain }: Market, { payer, depositNonce }: ChannelOrder): boolean {
  return chain.moved(payer, depositNonce) !== undefined
}

/** Another voucher was signed that may have been used on the same total, or on a later one. */
export function hasFollower(order: ChannelOrder): boolean {
  return order.channel.orders.some((one) => one !== order && one.base >= order.base)
}

/**
 * Checks that a correction is what the client can prove and knows, and lets the client believe it: the last voucher is
 * its own; all that it was told to be charged is in it, and no more than it signed for.
 */
function judgeCorrection(
  market: Market,
  channel: Channel,
  given: { readonly entry: ChannelEntry; readonly order: ChannelOrder | undefined },
): void {
  const { order, entry } = given
  const { channelState, voucherState } = entry.extra
  const { name, network, id: channelId, voucherKey, orders } = channel
  if (channelState === undefined) {
    // A client that is told nothing reads the chain.
    const seen = readChannel(market.chain.escrow, channelId)
    Object.assign(channel, { charged: seen.claimed, balance: seen.balance })
    return
  }
  const charged = BigInt(channelState.chargedCumulativeAmount)
  const most = BigInt(voucherState?.signedMaxClaimable ?? 0)
  const own = voucherState && signVoucher(network, voucherKey, { channelId, maxClaimable: most })
  if (
    voucherState?.signature !== own ||
    (!(charged === 0n && most === 0n) && !isSigned(channel, most))
  )
    market.wrong(`${name} was shown a voucher of ${most} that it never signed`)
  if (charged > most) market.wrong(`${name} was charged ${charged} by a voucher of ${most}`)
  if (charged < BigInt(channelState.totalClaimed))
    market.wrong(`${name} was claimed ${channelState.totalClaimed} from, and charged ${charged}`)
  const before = orders.filter(({ deliveredStep = Number.POSITIVE_INFINITY }) => {
    return order !== undefined && deliveredStep < order.signedStep
  })
  for (const { base, charge = 0n } of before)
    if (charged < base + charge)
      market.wrong(`${name} is told ${charged}, and was charged ${base + charge}`)
  // Beside a voucher whose answer was lost the client may have begun below what another one was charged; the lost one, too.
  const known = orders.map(({ base, charge = 0n }) => base + charge)
  const lost = orders.filter((one) => one !== order && one.deliveredStep === undefined)
  const isLost = lost.some(({ base, maxClaimable }) => base < charged && charged <= maxClaimable)
  if (
    order !== undefined &&
    order.charge === undefined &&
    !hasFollower(order) &&
    charged > order.base &&
    !known.includes(charged) &&
    !isLost
  )
    market.wrong(`${name} is told ${charged}, and nothing was bought after ${order.base}`)
  channel.told.push(charged)
  channel.charged = charged
  channel.balance = BigInt(channelState.balance)
}

function isSigned({ orders }: Channel, most: bigint): boolean {
  return orders.some(({ maxClaimable }) => maxClaimable === most)
}

/** Asks for money back out of a channel; true where an answer settles it. */
export async function askBack(
  market: Market,
  channel: Channel,
  given: { readonly wanted: Wanted; readonly amount: bigint | undefined },
): Promise<boolean> {
  const { chance, scheduler } = market
  const { wanted, amount } = given
  const name = `${channel.name} refund`
  channel.isDrawn = true
  let { entry } = wanted
  for (let n = 0; n < triesMax; n++) {
    const headers = { ...wanted.own, ...signRefund(channel, entry, amount) }
    const step = market.step()
    const answer = await market.send(name, wanted.asked, { headers })
    if (answer?.status === 200) {
      const refunded = BigInt(JSON.parse(answer.text).refunded)
      if (amount !== undefined && refunded > amount)
        market.wrong(`${name} asked for ${amount}, and got ${refunded}`)
      channel.balance -= refunded
      return true
    }
    if (answer?.status === 402) {
      const offer = readOffer(market, wanted, { answer, step })
      if (offer === undefined) return false
      entry = offer.wanted.entry
      if (offer.error.startsWith(mismatch))
        judgeCorrection(market, channel, { entry, order: undefined })
      else if (/refund_(no_balance|too_soon)/.test(offer.error)) return true
      else if (!offer.error.includes('refund_simulation_failed'))
        market.wrong(`${name} was refused: ${offer.error}`)
    } else if (answer !== undefined && answer.status !== 503 && answer.status !== 500)
      market.wrong(`${name} was answered ${answer.status} ${answer.code} ${answer.text}`)
    await scheduler.sleep(chance.between(`${name} pauses`, 500, 8_000))
  }
  return false
}
