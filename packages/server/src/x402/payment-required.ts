import { formatUsd } from '../base/format-usd.ts'
import type { ChannelOffer } from './channels/channel-offer.ts'
import { buildChannelEntry } from './channels/channel-offer.ts'
import type { PaymentNetwork } from './networks.ts'
import { paymentIdentifierOffer } from './payment-identifier.ts'
import type { Requirement } from './protocol.ts'
import { buildUptoEntry, type UptoOffer } from './upto/upto-offer.ts'

type Resource = {
  /** Absolute. */
  readonly url: string
  readonly description: string
  readonly mimeType: string
}

type PaymentRequired = {
  /** Value of the header PAYMENT-REQUIRED (version 2). */
  readonly header: string
  /** The reply's body (version 1). */
  readonly body: { readonly x402Version: 1; readonly error: string; readonly accepts: object[] }
}

/** Builds the answer of a 402 in both versions at once: version 2 clients take the header, older ones the body. */
export function buildPaymentRequired(offer: {
  readonly resource: Resource
  readonly requirements: readonly Requirement[]
  /** Stock clients take the first way that they know, so these come last. */
  readonly uptos?: readonly UptoOffer[]
  readonly channels?: readonly ChannelOffer[]
  /** Extensions of version 2 beside payment-identifier. */
  readonly extensions?: Readonly<Record<string, unknown>>
  readonly error: string
}): PaymentRequired {
  const { resource, requirements, uptos = [], channels = [], error } = offer
  const exact = requirements.map((requirement) => buildAcceptsEntry(requirement))
  const accepts = [...exact, ...uptos.map(buildUptoEntry), ...channels.map(buildChannelEntry)]
  return {
    header: encodeHeader({
      ...{ x402Version: 2, error, resource, accepts },
      extensions: { ...paymentIdentifierOffer, ...offer.extensions },
    }),
    body: {
      x402Version: 1,
      error,
      accepts: requirements.flatMap((requirement) => buildEntriesV1(requirement, resource)),
    },
  }
}

/** Builds one payment option as version 2 writes it in `accepts`; facilitators take it as paymentRequirements. */
export function buildAcceptsEntry(requirement: Requirement): Readonly<Record<string, unknown>> {
  const { network, amount, maxTimeoutSeconds } = requirement
  return {
    scheme: 'exact',
    network: network.id,
    amount: amount.toString(),
    asset: network.asset.address,
    payTo: network.payTo,
    maxTimeoutSeconds,
    extra: buildExtra(requirement, 'x402-facilitator'),
  }
}

/** Stock clients take the first entry of a network, so plain transfers come second, for clients that ask for them. */
function buildEntriesV1(requirement: Requirement, resource: Resource): object[] {
  const { network, depositAddress } = requirement
  const signed = { payTo: network.payTo, method: 'x402-facilitator' } as const
  if (depositAddress === undefined) return [buildEntryV1(requirement, resource, signed)]
  const native = { payTo: depositAddress, method: 'native' } as const
  return [signed, native].map((option) => buildEntryV1(requirement, resource, option))
}

type PayingWay = 'x402-facilitator' | 'native'

const playMoneyText =
  'the local chain of this service, with play money from its faucet: nothing here is worth anything elsewhere'

/** Builds a version 1 entry. Old clients refuse the whole answer if one field is missing, null or of another type. */
function buildEntryV1(
  requirement: Requirement,
  resource: Resource,
  option: { payTo: string; method: PayingWay },
): object {
  const { network, amount, maxTimeoutSeconds } = requirement
  return {
    scheme: 'exact',
    network: network.v1Name,
    maxAmountRequired: amount.toString(),
    resource: resource.url,
    description: resource.description,
    mimeType: resource.mimeType,
    outputSchema: {},
    payTo: option.payTo,
    maxTimeoutSeconds,
    asset: network.asset.address,
    extra: buildExtra(requirement, option.method),
  }
}

function buildExtra(
  requirement: Requirement,
  paymentMethod: PayingWay,
): Readonly<Record<string, unknown>> {
  const { network, amount, quoteId, expiresAt, costBreakdown, price } = requirement
  const least = network.minimumPayment.toString()
  return {
    name: network.asset.name,
    version: network.asset.version,
    quoteId,
    chainType: 'evm',
    chainId: network.chainId,
    paymentMethod,
    tokenSymbol: network.asset.symbol,
    tokenDecimals: network.asset.decimals,
    ...(costBreakdown === undefined ? {} : { costBreakdown }),
    ...(price === undefined ? {} : { price: price.toString(), minimumPayment: least }),
    ...(network.isDevnet === true && { playMoney: playMoneyText }),
    pricing: {
      baseAmount: amount.toString(),
      baseAsset: network.asset.symbol,
      expiresAt,
      ...(isDollar(network) && { usd: formatUsd(amount, network.asset.decimals) }),
    },
  }
}

/** Encodes a value for a header, which carries ASCII only: base64 of the JSON text's UTF-8. */
export function encodeHeader(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

/** Other tokens have no price in dollars that the service knows. */
function isDollar({ asset }: PaymentNetwork): boolean {
  return asset.symbol === 'USDC'
}
