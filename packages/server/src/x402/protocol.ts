import { formatUsd } from '../base/format-usd.ts'
import type { ChannelOffer } from './channels/channel-offer.ts'
import { buildChannelEntry } from './channels/channel-offer.ts'
import type { PaymentNetwork } from './networks.ts'
import { paymentIdentifierOffer } from './payment-identifier.ts'
import { buildUptoEntry, type UptoOffer } from './upto/upto-offer.ts'
import type { UptoTerms } from './upto/upto-terms.ts'

/** The cost of one request on one network: the promise that a quote id stands for. */
export type Requirement = {
  readonly network: PaymentNetwork
  /** Atomic units; the payment's value must equal it. */
  readonly amount: bigint
  /** Made by quote.ts. */
  readonly quoteId: string
  /** The end of the quote, in seconds since 1970. */
  readonly expiresAt: number
  readonly maxTimeoutSeconds: number
  /** Parts of the price by name, for display. */
  readonly costBreakdown?: Readonly<Record<string, number>>
  /**
   * The most that the request costs, if the network's smallest payment is more; the rest is added to the payer's
   * balance.
   */
  readonly price?: bigint
  /** The address for plain transfers for this quote, and for no other; absent if they are not accepted. */
  readonly depositAddress?: string
  /** Its transaction must make no other payment: the server that it is for may count each transaction once. */
  readonly isAlone?: true
}

export type Resource = {
  /** Absolute. */
  readonly url: string
  readonly description: string
  readonly mimeType: string
}

/** The signed fields of an EIP-3009 transferWithAuthorization; hexadecimal text is lower case. */
export type ExactPayment = {
  readonly from: string
  readonly to: string
  readonly value: bigint
  /** Seconds since 1970, like validBefore. */
  readonly validAfter: bigint
  readonly validBefore: bigint
  /** 32 bytes; unique per token and payer. */
  readonly nonce: string
  /** r, s, v: 65 bytes, v is 27 or 28. */
  readonly signature: string
}

/** The requirement that a version 2 payment says it accepts. */
export type Accepted = {
  readonly scheme: string
  readonly network: string
  readonly amount: bigint
  readonly asset: string
  readonly payTo: string
}

/** The value that a payer has moved to one address by one transaction of its own, as the chain shows it. */
export type NativeTransfer = {
  readonly from: string
  readonly to: string
  readonly value: bigint
  /** The hash of the transaction. */
  readonly transaction: string
  /** The index of its first log among the transaction's logs, from 0. */
  readonly logIndex: number
  readonly blockNumber: bigint
  /** The time of its block, in seconds since 1970. */
  readonly blockTime: bigint
}

type Envelope = {
  readonly version: 1 | 2
  /** CAIP-2. */
  readonly network: string
  readonly scheme: 'exact' | 'upto'
  /** Absent if the client does not echo it, as stock version 1 clients do not. */
  readonly quoteId?: string
  /**
   * The form in which the client wants its receipt: version 1 clients that send a quoteId (the public SDK) parse
   * the header as JSON without decoding base64 first.
   */
  readonly receiptForm: 'base64' | 'json'
}

/** A signed authorization, read strictly; nothing in it has been checked against anything yet. */
export type SignedPayment = Envelope & {
  readonly accepted?: Accepted
  /**
   * Names the sender of a payment without a quote, in place of the quote that only its buyer knows: any one of its
   * words is enough.
   */
  readonly origin?: string
  /** The payer's name for the payment, by the extension payment-identifier. */
  readonly identifier?: string
  /** There in the scheme `upto`: then the value of `payload` is what is taken, and at first the most that may be. */
  readonly upto?: UptoTerms
  /** There where a channel pays: its payer, and the most that its voucher allows. */
  readonly channel?: { readonly payer: string; readonly maxClaimable: bigint }
  readonly payload: ExactPayment
}

/** A transfer that the payer made itself, found on the chain. */
export type NativePayment = Envelope & { readonly payload: NativeTransfer }

export type Payment = SignedPayment | NativePayment

/** A payer's claim about a transfer that it made itself: nothing in it counts until the chain shows it. */
export type NativeProof = Omit<Envelope, 'network'> & {
  /** The network's CAIP-2 id; absent if the client does not know it. */
  readonly network?: string
  /** Hash of the transaction. */
  readonly transaction: string
  /** The sender; absent if the client does not know it. */
  readonly sender?: string
}

/** A payment as a request carries it. */
export type PresentedPayment = SignedPayment | NativeProof

export function isNative(payment: Payment): payment is NativePayment {
  return 'transaction' in payment.payload
}

export type PaymentRequired = {
  /** Value of the header PAYMENT-REQUIRED (version 2). */
  readonly header: string
  /** The reply's body (version 1). */
  readonly body: { readonly x402Version: 1; readonly error: string; readonly accepts: object[] }
}

/** The facts about a settlement that the payer is told. */
export type SettlementNotice = {
  readonly success: boolean
  /** Hash of the transaction, empty when none was sent. */
  readonly transaction: string
  readonly network: PaymentNetwork
  readonly payer: string
  /** The amount that the transaction moved, or that the payer's balance was charged. */
  readonly amount: bigint
  /** There where nothing was sent, and the payer's balance was charged instead. */
  readonly paidFrom?: 'balance'
  readonly errorReason?: string
  readonly blockNumber?: bigint
  /** ISO 8601. */
  readonly confirmedAt?: string
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
    header: base64({
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

/** Returns the name and value of the response header that tells the payer about its settlement. */
export function encodeSettlement(
  payment: Pick<Payment, 'version' | 'receiptForm'>,
  notice: SettlementNotice,
): { readonly name: string; readonly value: string } {
  const { success, transaction, network, payer, amount, errorReason, paidFrom } = notice
  const receipt = {
    success,
    transaction,
    network: payment.version === 1 ? network.v1Name : network.id,
    payer,
    amount: amount.toString(),
    ...(paidFrom === undefined ? {} : { paid_from: paidFrom }),
    ...(errorReason === undefined ? {} : { errorReason }),
  }
  if (payment.version === 2) return { name: 'PAYMENT-RESPONSE', value: base64(receipt) }
  const name = 'X-PAYMENT-RESPONSE'
  if (payment.receiptForm === 'base64') return { name, value: base64(receipt) }
  // The further names are those that the public SDK reads.
  const sdk = {
    txHash: transaction,
    ...(notice.blockNumber === undefined ? {} : { blockHeight: Number(notice.blockNumber) }),
    ...(notice.confirmedAt === undefined ? {} : { confirmedAt: notice.confirmedAt }),
  }
  return { name, value: JSON.stringify({ ...receipt, ...sdk }) }
}

/** Stock clients take the first entry of a network, so plain transfers come second, for clients that ask for them. */
function buildEntriesV1(requirement: Requirement, resource: Resource): object[] {
  const { network, depositAddress } = requirement
  const signed = { payTo: network.payTo, method: 'x402-facilitator' } as const
  if (depositAddress === undefined) return [buildEntryV1(requirement, resource, signed)]
  const native = { payTo: depositAddress, method: 'native' } as const
  return [signed, native].map((option) => buildEntryV1(requirement, resource, option))
}

type PaymentMethod = 'x402-facilitator' | 'native'

const playMoneyText =
  'the local chain of this service, with play money from its faucet: nothing here is worth anything elsewhere'

/** Builds a version 1 entry. Old clients refuse the whole answer if one field is missing, null or of another type. */
function buildEntryV1(
  requirement: Requirement,
  resource: Resource,
  option: { payTo: string; method: PaymentMethod },
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
  paymentMethod: PaymentMethod,
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
function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

/** Other tokens have no price in dollars that the service knows. */
function isDollar({ asset }: PaymentNetwork): boolean {
  return asset.symbol === 'USDC'
}
