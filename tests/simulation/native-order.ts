import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { deriveBuyerKey } from './buyer-keys.ts'
import type { Market } from './market.ts'
import { base64, type Order, type Quoted } from './order.ts'
import { makeDepositRequest } from './requests.ts'
import { ownNetwork } from './shop.ts'

type Entry = {
  readonly network: string
  readonly maxAmountRequired: string
  readonly payTo: string
  readonly extra: {
    readonly quoteId: string
    readonly paymentMethod?: string
    readonly price?: string
    readonly costBreakdown: { readonly derive?: number }
  }
}

/** The time in which the network's blocks get a transfer, and a proof of it is brought. */
const validSeconds = 150

/** Moves the money to the address of the quote, sometimes more or less than was asked for; the proof names the transaction. */
export function makeNativeOrder(market: Market, given: Quoted): Order {
  const { chain, chance, scheduler } = market
  const { name, kind, isJoin, libraryItem, asked, own, rows, answer } = given
  const entry: Entry | undefined = JSON.parse(answer.text).accepts.find(
    ({ extra }: Entry) => extra.paymentMethod === 'native',
  )
  if (entry === undefined) throw new Error(`${name} may not be paid by a transfer: ${answer.text}`)
  const { extra, payTo } = entry
  const payer = deriveAddress(deriveBuyerKey(name.split('.')[0] ?? name))
  const asks = BigInt(entry.maxAmountRequired)
  const isTooLittle = chance.happens(`${name} is too little`, 100)
  const more = chance.happens(`${name} is more`, 200) ? chance.between(`${name} more`, 1, 5_000) : 0
  const amount = isTooLittle ? asks - 1n : asks + BigInt(more)
  const hash = chain.transfer({ from: payer, to: payTo, value: amount })
  const sender = chance.pick(`${name} says who it is`, ['unknown', payer])
  const payload = { txHash: hash, sender, timestamp: Math.floor(scheduler.now / 1000) }
  const { network } = entry
  const proof = { x402Version: 1, scheme: 'exact', network, quoteId: extra.quoteId, payload }
  scheduler.note(`${name} sends ${amount} to ${payTo} for ${kind} of ${rows}`)
  return {
    ...{ name, kind, asked, isJoin, libraryItem, rows, payer, amount },
    headers: { ...own, 'x-payment': base64(proof) },
    network: ownNetwork,
    nonce: `${hash}:0`,
    price: BigInt(extra.price ?? asks),
    derive: BigInt(extra.costBreakdown.derive ?? 0),
    validBefore: Math.floor(scheduler.now / 1000) + validSeconds,
    signedStep: market.step(),
    quoteId: extra.quoteId,
    settling: makeDepositRequest(proof),
    ...{ isTooLittle, depositAddress: payTo, isUsedBefore: false, isSpent: false },
    ...{ isUpto: false, isNews: false, isDirect: false, isBalanceOff: false, shelf: undefined },
    ...{ delivered: undefined, deliveredStep: undefined },
  }
}
