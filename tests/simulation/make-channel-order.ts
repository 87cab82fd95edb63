import {
  computeChannelId,
  computeDepositNonce,
} from '../../packages/server/src/x402/channels/channel.ts'
import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { deriveBuyerKey } from './buyer-keys.ts'
import type { Channel, ChannelOrder } from './channel-order.ts'
import { computeLibraryQuote, type LibraryItem, makeLibraryRequest } from './library.ts'
import type { Market } from './market.ts'
import { base64 } from './order.ts'
import { makeListRequest, makeStoreRequest } from './requests.ts'
import type { Answer, Asked } from './send-request.ts'
import { gasAddress, ownNetwork } from './shop.ts'
import { signDeposit, signVoucher } from './vouchers.ts'

/** An offer to be paid by a channel, as a 402 makes it; it says what the channel is where the payer has it wrong. */
export type ChannelEntry = {
  readonly scheme: string
  readonly network: string
  readonly amount: string
  readonly extra: {
    readonly quoteId: string
    readonly channelState?: {
      readonly chargedCumulativeAmount: string
      readonly balance: string
      readonly totalClaimed: string
    }
    readonly voucherState?: { readonly signedMaxClaimable: string; readonly signature: string }
  }
}

/** Something to buy by a channel, with the price that was asked. */
export type Wanted = {
  readonly name: string
  readonly kind: 'read' | 'write'
  readonly libraryItem: LibraryItem | undefined
  readonly rows: number
  readonly asked: Asked
  readonly own: Readonly<Record<string, string>>
  readonly entry: ChannelEntry
}

/** The least that stock clients deposit. */
const depositMin = 1_000_000n
const withdrawDelay = 86_400
const triesMax = 12

/** Opens a channel, of a wallet of its own or of a buyer's, perhaps with another key for its vouchers. */
export function openChannel({ chance }: Market, name: string, buyers: number): Channel {
  const isOfBuyer = chance.happens(`${name} is a buyer's`, 500)
  const wallet = isOfBuyer ? `b${chance.between(`${name} buyer`, 1, buyers)}` : 'v'
  const payerKey = deriveBuyerKey(wallet)
  const voucherKey = chance.happens(`${name} has its own key`, 300)
    ? deriveBuyerKey(name)
    : payerKey
  const config = {
    payer: deriveAddress(payerKey),
    payerAuthorizer: deriveAddress(voucherKey),
    receiver: ownNetwork.payTo,
    receiverAuthorizer: gasAddress,
    token: ownNetwork.asset.address,
    withdrawDelay,
    salt: `0x${chance.bytes(`${name} salt`, 32).toString('hex')}`,
  }
  return {
    ...{ name, network: ownNetwork, config, id: computeChannelId(ownNetwork.chainId, config) },
    ...{ payerKey, voucherKey, charged: 0n, balance: 0n, orders: [], told: [] },
    ...{ isDrawn: false, isWithdrawing: false },
  }
}

/** Asks for the price of something. */
export async function want(
  market: Market,
  channel: Channel,
  n: number,
): Promise<Wanted | undefined> {
  const { chance, scheduler } = market
  const who = channel.name
  const name = `${who}.${n}`
  const thing = chance.pick(`${who} wants`, ['goods', 'goods', 'notes', 'pages', 'maps'] as const)
  const isStock = thing === 'goods' || thing === 'notes'
  const rows = chance.between(`${who} rows`, 1, thing === 'notes' ? 3 : 9)
  const marks = Array.from({ length: rows }, (_, at) => ({ mark: `${name}/${at}` }))
  const what = {
    name,
    rows,
    kind: thing === 'notes' ? 'write' : 'read',
    libraryItem: isStock ? undefined : thing,
    asked: !isStock
      ? makeLibraryRequest(thing, rows)
      : thing === 'notes'
        ? makeStoreRequest('notes', marks)
        : makeListRequest(rows),
    own: thing === 'notes' ? { 'x-app-key': market.keys.appKey } : {},
  } as const
  for (let attempt = 0; attempt < triesMax; attempt++) {
    const step = market.step()
    const answer = await market.send(name, what.asked, { headers: what.own })
    if (answer?.status === 402) return readOffer(market, what, { answer, step })?.wanted
    if (answer !== undefined && answer.status < 500)
      market.wrong(`${name}: without a payment the answer was ${answer.status} ${answer.text}`)
    await scheduler.sleep(chance.between(`${who} waits for a quote`, 500, 5_000))
  }
  return undefined
}

/** Reads the offer of a channel out of a 402, and checks that its price was in force at some time since the step. */
export function readOffer(
  market: Market,
  what: Omit<Wanted, 'entry'>,
  { answer, step }: { readonly answer: Answer; readonly step: number },
): { readonly wanted: Wanted; readonly error: string } | undefined {
  const { name, libraryItem, rows } = what
  const text = Buffer.from(answer.headers['payment-required'] ?? '', 'base64').toString()
  const { error, accepts } = JSON.parse(text)
  const entry = (accepts as ChannelEntry[]).find(({ scheme }) => scheme === 'batch-settlement')
  if (entry === undefined) {
    market.wrong(`${name} was not offered to be paid by a channel`)
    return undefined
  }
  const prices =
    libraryItem === undefined
      ? market.prices.since(step).map((one) => one * BigInt(rows))
      : [computeLibraryQuote(libraryItem, rows)]
  if (!prices.includes(BigInt(entry.amount)))
    market.wrong(`${name} was asked for ${entry.amount}, by a price that is not in force`)
  return { wanted: { ...what, entry }, error }
}

/** Signs a voucher for it, by the client's books of the channel, with a deposit where they say that it needs one. */
export function signChannelOrder(market: Market, channel: Channel, wanted: Wanted): ChannelOrder {
  const { chance, scheduler } = market
  const { name, kind, libraryItem, rows, asked, own, entry } = wanted
  const { id: channelId, config, network } = channel
  const price = BigInt(entry.amount)
  const maxClaimable = channel.charged + price
  const missing = maxClaimable - channel.balance
  const least = missing > depositMin ? missing : depositMin
  const deposit =
    missing > 0n ? least + BigInt(chance.between(`${name} deposits more`, 0, 9)) * 100_000n : 0n
  const signature = signVoucher(network, channel.voucherKey, { channelId, maxClaimable })
  const validBefore = Math.floor(scheduler.now / 1000) + chance.between(`${name} valid`, 60, 250)
  const salt = `0x${chance.bytes(`${name} deposit`, 32).toString('hex')}`
  const payload = {
    type: deposit > 0n ? 'deposit' : 'voucher',
    channelConfig: config,
    voucher: { channelId, maxClaimableAmount: String(maxClaimable), signature },
    ...(deposit > 0n && {
      deposit: signDeposit(network, {
        ...{ key: channel.payerKey, config, channelId, amount: deposit, validBefore },
        salt,
      }),
    }),
  }
  const header = base64({ x402Version: 2, accepted: entry, payload })
  scheduler.note(`${name} signs ${channel.charged} + ${price}, and deposits ${deposit}`)
  return {
    ...{ name, kind, libraryItem, rows, asked, channel, price, maxClaimable, deposit, network },
    headers: { ...own, 'payment-signature': header },
    payer: config.payer,
    nonce: '',
    depositNonce: computeDepositNonce(channelId, BigInt(salt)),
    amount: price,
    depositEndsMs: (validBefore - 10) * 1000,
    ...{ isNews: false, shelf: undefined, isDirect: false, isJoin: false, derive: 0n },
    base: channel.charged,
    signedStep: market.step(),
    deliveredStep: undefined,
    quoteId: entry.extra.quoteId,
    ...{ charge: undefined, isOpen: false, isDepositTold: false, delivered: undefined },
  }
}

/** Makes the payment that asks for the rest of a channel's money, or a part of it. */
export function signRefund(
  { network, id: channelId, config, charged, voucherKey }: Channel,
  entry: ChannelEntry,
  amount: bigint | undefined,
): Readonly<Record<string, string>> {
  const signature = signVoucher(network, voucherKey, { channelId, maxClaimable: charged })
  const payload = {
    ...{ type: 'refund', channelConfig: config },
    voucher: { channelId, maxClaimableAmount: String(charged), signature },
    ...(amount !== undefined && { amount: String(amount) }),
  }
  return { 'payment-signature': base64({ x402Version: 2, accepted: entry, payload }) }
}
