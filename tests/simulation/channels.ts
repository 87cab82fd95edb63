import { sql } from '../../packages/server/src/database/sql.ts'
import type { Channel, ChannelOrder } from './channel-order.ts'
import { askBack, attemptByChannel, hasFollower, persistByChannel } from './channel-orders.ts'
import { readChannel, readReceiver } from './escrow-model.ts'
import {
  type ChannelEntry,
  openChannel,
  readOffer,
  signChannelOrder,
  type Wanted,
  want,
} from './make-channel-order.ts'
import type { Market } from './market.ts'
import { base64 } from './order.ts'
import { makeListRequest } from './requests.ts'

/** Corrections that a client follows before it gives up. */
const correctionsMax = 5
const awakeMs = 25_000
/** As many blocks as the service waits for. */
const confirmedMs = 10_000
const hourMs = 3_700_000
const dayMs = 86_400_000

/** Buyers pay by channels, by several vouchers at once, ask for money back, or take it back by themselves. */
export async function payByChannels(
  market: Market,
  buyers: number,
  channels: Channel[],
): Promise<void> {
  const { chance } = market
  const count = chance.between('channels', 1, 3)
  const running = Array.from({ length: count }, async (_, at) => {
    const channel = openChannel(market, `v${at + 1}`, buyers)
    channels.push(channel)
    await market.scheduler.sleep(chance.between('a channel comes', 0, 15_000))
    await useChannel(market, channel)
  })
  await Promise.all(running)
}

async function useChannel(market: Market, channel: Channel): Promise<void> {
  const { chance, scheduler } = market
  const { name } = channel
  const count = chance.between(`${name} buys`, 2, 6)
  for (let n = 0; n < count; n++) {
    await scheduler.sleep(chance.between(`${name} thinks`, 0, 6_000))
    const width = chance.happens(`${name} buys several at once`, 300) ? 3 : 1
    const bought = await Promise.all(
      Array.from({ length: width }, (_, at) => buyByChannel(market, channel, n * 3 + at)),
    )
    const [last] = bought
    if (last === undefined) continue
    if (chance.happens(`${name} asks again`, 400))
      await attemptByChannel(market, last.order, last.wanted)
    if (chance.happens(`${name} signs again`, 300)) await signAgain(market, last)
    // Nobody sees a voucher but who it was given to, before it is used.
    const { delivered, charge = 0n } = last.order
    if (delivered !== undefined && charge > 0n && chance.happens(`${name} is robbed`, 300))
      await rob(market, last.order)
    // A client that does not know whether a request was charged may believe that it was, and sign for that.
    if (last.order.isOpen && chance.happens(`${name} believes the worst`, 400))
      channel.charged = last.order.maxClaimable
    if (chance.happens(`${name} asks back`, 150))
      await askBack(market, channel, {
        wanted: last.wanted,
        amount: chance.happens(`${name} asks all back`, 500) ? undefined : 300_000n,
      })
    if (chance.happens(`${name} withdraws`, 100)) withdraw(market, channel)
  }
}

type Buying = { readonly order: ChannelOrder; readonly wanted: Wanted }

/** Buys something, and follows what it is told of the channel, as a stock client does. */
async function buyByChannel(
  market: Market,
  channel: Channel,
  n: number,
): Promise<Buying | undefined> {
  let wanted = await want(market, channel, n)
  for (let turn = 0; wanted !== undefined && turn < correctionsMax; turn++) {
    const order: ChannelOrder = signChannelOrder(market, channel, wanted)
    channel.orders.push(order)
    const outcome = await persistByChannel(market, order, wanted)
    if (outcome === 'over') return { order, wanted }
    wanted = outcome.corrected
  }
  return undefined
}

/** A client whose connection broke asks from the start, and signs the same: it gets the channel's last answer again. */
async function signAgain(market: Market, { order, wanted }: Buying): Promise<void> {
  const { name, asked, delivered, charge = 0n, price } = order
  if (delivered === undefined || charge === 0n) return
  const step = market.step()
  const unpaid = await market.send(name, asked, { headers: wanted.own })
  const offer =
    unpaid?.status === 402 ? readOffer(market, wanted, { answer: unpaid, step }) : undefined
  if (offer === undefined || BigInt(offer.wanted.entry.amount) !== price || hasFollower(order))
    return
  const headers = { ...wanted.own, ...signSameVoucher(order, offer.wanted.entry) }
  const answer = await market.send(`${name} again`, asked, { headers })
  const isOpen = answer === undefined || answer.code === 'REQUEST_IN_PROGRESS'
  if (isOpen || answer.status >= 500) return
  if (answer.text !== delivered.text || answer.headers['x-payment-id'] !== delivered.paymentId)
    market.wrong(`${name} was delivered, and signed again it was ${answer.status} ${answer.text}`)
}

/** Somebody else who saw the voucher uses it for something cheaper: it must buy nothing. */
async function rob(market: Market, { name, headers, maxClaimable }: ChannelOrder): Promise<void> {
  const from = '203.0.113.9'
  const asked = { ...makeListRequest(2), from }
  const answer = await market.send(`${name} robber`, asked, { headers: {} })
  if (answer?.status !== 402) return
  const { accepts } = decode(answer.headers['payment-required'])
  const accepted = accepts.find(
    ({ scheme }: ChannelEntry) => scheme === decode(headers['payment-signature']).accepted.scheme,
  )
  const stolenAnswer = await market.send(`${name} robbed`, asked, {
    headers: signSameVoucher({ headers }, accepted),
  })
  if (stolenAnswer !== undefined && stolenAnswer.status < 300)
    market.wrong(`${name}: a voucher of ${maxClaimable} bought something for who only saw it`)
}

/** Makes the payment for another offer by the voucher of an order, which looks the same however often it is signed. */
function signSameVoucher({ headers }: Pick<ChannelOrder, 'headers'>, accepted: ChannelEntry) {
  const { deposit: _, ...payload } = decode(headers['payment-signature']).payload
  const payment = { x402Version: 2, accepted, payload: { ...payload, type: 'voucher' } }
  return { 'payment-signature': base64(payment) }
}

function decode(text = '') {
  return JSON.parse(Buffer.from(text, 'base64').toString())
}

/** The payer takes a part back by itself, which needs a day. */
function withdraw(market: Market, channel: Channel): void {
  const { id, config } = channel
  const known = market.chain.escrow.channels.get(id)
  if (known === undefined || channel.isWithdrawing) return
  const left = known.balance - known.claimed
  const amount = left / BigInt(market.chance.between(`${channel.name} withdraws of it`, 1, 3))
  if (amount === 0n) return
  channel.isDrawn = true
  channel.isWithdrawing = true
  market.scheduler.note(`${channel.name} begins to withdraw ${amount}`)
  market.chain.callEscrow(config.payer, { kind: 'initiateWithdraw', config, amount })
}

/**
 * In the end each channel still buys, and its client knows what was charged. A payer whose payments failed three times on
 * the service's gas deposits again after an hour.
 */
export async function finishChannels(market: Market, channels: readonly Channel[]): Promise<void> {
  const left = (await buyLast(market, channels, 90)).filter(({ isWithdrawing }) => !isWithdrawing)
  if (left.length === 0) return
  await passHour(market)
  for (const { name } of await buyLast(market, left, 92))
    market.wrong(`${name} buys nothing in the end`)
}

/** Returns the channels that bought nothing. */
async function buyLast(
  market: Market,
  channels: readonly Channel[],
  n: number,
): Promise<readonly Channel[]> {
  const left: Channel[] = []
  for (const channel of channels) {
    const last = await buyByChannel(market, channel, n)
    if (last?.order.delivered === undefined) left.push(channel)
  }
  return left
}

async function passHour({ scheduler }: Market): Promise<void> {
  scheduler.note('an hour passes')
  scheduler.leap(hourMs)
  await scheduler.sleep(awakeMs)
}

/**
 * Everybody gets what is his: payers the rest of what they deposited, the service what it has charged. The last charges
 * are an hour old, and each withdrawal a day, before nobody claims or waits any more.
 */
export async function drainChannels(market: Market, channels: readonly Channel[]): Promise<void> {
  const { scheduler } = market
  // A service that stops claims at once what would be claimed within the hour.
  const isClaimed = market.subjects.has('stops') && (await stopWhileTheyWithdraw(market, channels))
  for (const channel of channels) {
    const wanted = await want(market, channel, 91)
    if (wanted === undefined) market.wrong(`${channel.name} is offered nothing in the end`)
    else if (!(await askBack(market, channel, { wanted, amount: undefined })))
      market.wrong(`${channel.name} gets nothing back in the end`)
  }
  if (!isClaimed) await passHour(market)
  // A claim of which nobody saw the end, because the clock leaped then, is sent within the hour after it is seen.
  if (hasUnsent(market)) await passHour(market)
  const withdrawing = channels.filter(({ isWithdrawing }) => isWithdrawing)
  if (withdrawing.length === 0) return
  market.passDay(dayMs)
  for (const { config } of withdrawing)
    market.chain.callEscrow(config.payer, { kind: 'finalizeWithdraw', config })
  await scheduler.sleep(awakeMs)
}

/** Returns true where the contract has more for the service than is not worth its gas. */
export function hasUnsent({ chain }: Market): boolean {
  const { payTo, asset, minimumPayment } = chain.network
  const { claimed, settled } = readReceiver(chain.escrow, payTo, asset.address)
  return claimed - settled >= minimumPayment
}

/**
 * Stops the service, while some payers begin to take back what they have; false where none was there to stop. All that
 * was charged must be claimed by then, but what is not worth its gas.
 */
async function stopWhileTheyWithdraw(
  market: Market,
  channels: readonly Channel[],
): Promise<boolean> {
  const { chance, chain, database, scheduler } = market
  for (const channel of channels)
    if (chance.happens(`${channel.name} withdraws before the stop`, 400)) withdraw(market, channel)
  if (!(await market.stop())) return false
  await scheduler.sleep(confirmedMs)
  const charged = await scheduler.held(() =>
    database.query<{ id: string; charged: bigint }>(
      sql`SELECT id, charged::int8 FROM system.channel`,
    ),
  )
  for (const { id, charged: due } of charged) {
    const { claimed, balance } = readChannel(chain.escrow, id)
    // Nothing can be claimed of what no deposit covers any more.
    const isCovered = due <= balance
    if ((isCovered ? due : balance) - claimed >= chain.network.minimumPayment)
      market.wrong(`${id} was charged ${due}, and the service stopped at a claim of ${claimed}`)
  }
  return true
}
