import { Fault } from '../../../base/fault.ts'
import { formatUnits } from '../../../base/format-usd.ts'
import { HttpReply } from '../../../http/reply.ts'
import type { RequestInfo } from '../../../http/request-info.ts'
import type { ChannelOffer } from '../../../x402/channels/channel-offer.ts'
import { deriveDepositAddress } from '../../../x402/deposit-address.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { buildPaymentRequired } from '../../../x402/payment-required.ts'
import type { Requirement } from '../../../x402/protocol.ts'
import type { UptoOffer } from '../../../x402/upto/upto-offer.ts'
import { makeSignInOffer } from '../budgets/sign-in.ts'
import { type DirectPayee, type DirectPayees, toDirectNetwork } from '../direct/direct-payees.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import {
  canAnswerFirst,
  depositOperation,
  isCostKnown,
  type Offer,
  type Terms,
} from '../purchase.ts'
import {
  formatAskedName,
  issueSalted,
  makeAskedRequirement,
  makeQuoteScope,
  makeTermsNow,
  type QuotePorts,
} from './quoting.ts'

/** Asks for a payment, on every network that is configured. No row is stored: a quote is a MAC. */
export async function askForPayment(
  ports: QuotePorts & { readonly payees: DirectPayees },
  asked: {
    requestInfo: RequestInfo
    offer: Offer
    hash: string
    error: string
    /** Told to a payer whose books of a channel are wrong: the error goes out as it is, and this with it. */
    correction?: ChannelOffer['correction']
  },
): Promise<HttpReply> {
  const { requestInfo, offer, hash, error, correction } = asked
  const now = makeTermsNow(ports, offer)
  const breakdown = offer.breakdownUnder(now.prices)
  const issue = (network: PaymentNetwork) => {
    const terms = { ...now, quoteId: issueSalted(ports, now, makeQuoteScope(network, hash)) }
    ports.asked.note(formatAskedName(network, hash), terms, ports.world.now())
    return { ...makeAskedRequirement(network, terms), costBreakdown: breakdown }
  }
  const requirements = ports.methods.map(({ network, native }): Requirement => {
    const requirement = issue(network)
    if (native === undefined) return requirement
    return {
      ...requirement,
      depositAddress: deriveDepositAddress(ports.depositSecret, requirement.quoteId),
    }
  })
  if (requirements.length === 0) {
    throw new Fault('PAYMENT_NETWORK_UNREACHABLE', {
      message: 'This has a price, but no payment network is configured',
    })
  }
  const url = `${ports.publicUrl()}${requestInfo.path}`
  const texts = correction === undefined ? requirements.flatMap(listMinimumTexts) : []
  const said = [error, ...texts].join('. ')
  const payee = await ports.payees.find(offer, now)
  const straight = requirements.flatMap(({ network }): Requirement[] => {
    if (payee === undefined || !canBePaid(network, payee, now)) return []
    const requirement = issue(toDirectNetwork(network, payee.address))
    ports.payees.reserve(requirement.quoteId, payee)
    return [requirement]
  })
  const isDeposit = offer.operation === depositOperation
  const isUpto = canAnswerFirst(offer) || isCostKnown(offer, now)
  const offers = {
    // Stock clients take the first one that their wallet can pay.
    requirements: [...straight, ...requirements],
    uptos: isUpto ? listUptoOffers(ports, requirements) : [],
    channels: isDeposit ? [] : listChannelOffers(ports, { requirements, now, correction }),
    ...(offer.onlyByPayment !== true && {
      extensions: makeSignInOffer(ports, { hash, path: requestInfo.path, most: now.amount }),
    }),
  }
  return makePaymentRequired({ url, description: offer.description, error: said, ...offers })
}

/** A wallet takes no less than the network's smallest payment, and is neither ours nor the token. */
function canBePaid(
  { minimumPayment, payTo, asset }: PaymentNetwork,
  { address }: DirectPayee,
  { amount }: Terms,
): boolean {
  return amount >= minimumPayment && address !== payTo && address !== asset.address
}

function listUptoOffers(
  { methods }: PaymentPorts,
  requirements: readonly Requirement[],
): UptoOffer[] {
  return requirements.flatMap(({ network, amount, quoteId, maxTimeoutSeconds }) => {
    const upto = methods.find((one) => one.network.id === network.id)?.upto
    if (upto === undefined) return []
    return [{ network, amount, quoteId, maxTimeoutSeconds, facilitator: upto.address }]
  })
}

function listChannelOffers(
  { methods }: PaymentPorts,
  asked: {
    requirements: readonly Requirement[]
    now: Terms
    correction: ChannelOffer['correction']
  },
): ChannelOffer[] {
  const { requirements, now, correction } = asked
  return requirements.flatMap(({ network, quoteId, maxTimeoutSeconds }) => {
    const escrow = methods.find((one) => one.network.id === network.id)?.escrow
    if (escrow === undefined) return []
    const { authorizer } = escrow
    const offered = { network, amount: now.amount, quoteId, maxTimeoutSeconds, authorizer }
    return [correction === undefined ? offered : { ...offered, correction }]
  })
}

function listMinimumTexts({ network, amount, price }: Requirement): string[] {
  if (price === undefined) return []
  return [
    `The price is at most ${formatUnits(price)}; the smallest payment on ${network.id} is ${amount}, and what is not charged stays on the payer's balance`,
  ]
}

/** Makes the 402 reply for both versions of x402 at once. */
function makePaymentRequired(asked: {
  url: string
  description: string
  error: string
  requirements: readonly Requirement[]
  uptos: readonly UptoOffer[]
  channels: readonly ChannelOffer[]
  extensions?: Readonly<Record<string, unknown>>
}): HttpReply {
  const required = buildPaymentRequired({
    resource: { url: asked.url, description: asked.description, mimeType: 'application/json' },
    requirements: asked.requirements,
    uptos: asked.uptos,
    channels: asked.channels,
    ...(asked.extensions && { extensions: asked.extensions }),
    error: asked.error,
  })
  return new HttpReply(JSON.stringify(required.body), {
    status: 402,
    headers: { 'payment-required': required.header },
  })
}
