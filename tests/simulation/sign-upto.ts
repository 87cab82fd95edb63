import { deriveAddress, signDigest } from '../../packages/server/src/x402/signature.ts'
import { formatPermitNonce } from '../../packages/server/src/x402/upto/upto.ts'
import { uptoProxyAddress } from '../../packages/server/src/x402/upto/upto-terms.ts'
import { deriveBuyerKey } from './buyer-keys.ts'
import type { Market } from './market.ts'
import { base64, type Order, type Quoted } from './order.ts'
import { digestPermit, type Permit } from './permit-model.ts'
import { gasAddress, ownNetwork } from './shop.ts'

type Offered = {
  readonly scheme: string
  readonly network: string
  readonly amount: string
  readonly extra: {
    readonly quoteId: string
    readonly price?: string
    readonly costBreakdown?: { readonly derive?: number }
  }
}

/** Signs a permit for the most that something costs. A payer's nonces share a word of Permit2's books. */
export function signUptoOrder(market: Market, given: Quoted): Order {
  const { chance, scheduler } = market
  const { name, kind, isJoin, libraryItem, asked, own, rows, answer } = given
  const network = ownNetwork
  const text = Buffer.from(answer.headers['payment-required'] ?? '', 'base64').toString()
  const offers: Offered[] = JSON.parse(text).accepts.filter(
    (one: Offered) => one.network === network.id,
  )
  const entry = offers.find(({ scheme }) => scheme === 'upto')
  const exact = offers.find(({ scheme }) => scheme === 'exact')
  if (entry === undefined || exact === undefined)
    throw new Error(`${name} was not offered to be paid by upto: ${text}`)
  const [who = name, n = '0'] = name.split('.')
  const key = deriveBuyerKey(who)
  const validBefore = Math.floor(scheduler.now / 1000) + chance.between(`${name} valid`, 20, 150)
  const permit = {
    owner: deriveAddress(key),
    token: network.asset.address,
    permitted: BigInt(entry.amount),
    nonce: (BigInt(key.readUInt32BE()) << 8n) | BigInt(n),
    deadline: BigInt(validBefore),
    to: network.payTo,
    facilitator: gasAddress,
    validAfter: 0n,
  }
  const signature = signDigest(digestPermit(network.chainId, permit), key)
  const payload = makePayload({ ...permit, signature })
  const header = base64({ x402Version: 2, accepted: entry, payload })
  scheduler.note(`${name} permits ${entry.amount} for ${kind} of ${rows}`)
  return {
    ...{ name, kind, asked, network, isJoin, libraryItem, rows, validBefore },
    headers: { ...own, 'payment-signature': header },
    payer: permit.owner,
    nonce: formatPermitNonce(permit.nonce),
    amount: permit.permitted,
    price: BigInt(exact.extra.price ?? exact.amount),
    derive: BigInt(exact.extra.costBreakdown?.derive ?? 0),
    ...{
      isUpto: true,
      isNews: false,
      isDirect: false,
      shelf: undefined,
      isUsedBefore: false,
      isBalanceOff: false,
    },
    signedStep: market.step(),
    quoteId: entry.extra.quoteId,
    settling: asked,
    ...{ isSpent: false, delivered: undefined, deliveredStep: undefined },
  }
}

function makePayload(permit: Permit) {
  const { owner: from, token, permitted, nonce, deadline, to, facilitator, validAfter } = permit
  return {
    signature: permit.signature,
    permit2Authorization: {
      ...{ from, spender: uptoProxyAddress },
      permitted: { token, amount: String(permitted) },
      ...{ nonce: String(nonce), deadline: String(deadline) },
      witness: { to, facilitator, validAfter: String(validAfter) },
    },
  }
}
