import type { PaymentNetwork } from './networks.ts'

/** What one request costs on one network: the promise that a quote id stands for. */
export type Requirement = {
  readonly network: PaymentNetwork
  /** Atomic units; the payment's value must equal it. */
  readonly amount: bigint
  /** Made by quote.ts. */
  readonly quoteId: string
  /** When the quote ends, in seconds since 1970. */
  readonly expiresAt: number
  readonly maxTimeoutSeconds: number
  /** Parts of the price by name, for display. */
  readonly costBreakdown?: Readonly<Record<string, number>>
  /** What the request costs at most, where the network's smallest payment is more; the rest is the payer's balance. */
  readonly price?: bigint
  /** Where plain transfers for this quote go, and for no other; absent where they are not taken. */
  readonly depositAddress?: string
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

/** What a payer has moved to one address by one transaction of its own, as the chain shows it. */
export type NativeTransfer = {
  readonly from: string
  readonly to: string
  readonly value: bigint
  /** Hash of the transaction. */
  readonly transaction: string
  /** Place of the first of its logs among the transaction's logs, from 0. */
  readonly logIndex: number
  readonly blockNumber: bigint
  /** When its block was made, in seconds since 1970. */
  readonly blockTime: bigint
}

type Envelope = {
  readonly version: 1 | 2
  /** CAIP-2. */
  readonly network: string
  readonly scheme: 'exact'
  /** Absent where the client does not echo it, as stock version 1 clients do not. */
  readonly quoteId?: string
  /**
   * How the client wants its receipt: version 1 clients that send a quoteId (the public SDK) parse
   * the header as JSON without decoding base64 first.
   */
  readonly receiptForm: 'base64' | 'json'
}

/** A signed authorization, read strictly; nothing in it has been checked against anything yet. */
export type SignedPayment = Envelope & {
  readonly accepted?: Accepted
  /** Names who sent a payment without a quote, in place of the quote that only its buyer knows: any of its words does. */
  readonly origin?: string
  readonly payload: ExactPayment
}

/** A transfer that the payer made itself, found on the chain. */
export type NativePayment = Envelope & { readonly payload: NativeTransfer }

export type Payment = SignedPayment | NativePayment

/** What a payer says of a transfer that it made itself: nothing of it counts until the chain shows it. */
export type NativeProof = Omit<Envelope, 'network'> & {
  /** CAIP-2; absent where the client does not know it. */
  readonly network?: string
  /** Hash of the transaction. */
  readonly transaction: string
  /** Who sent it; absent where the client does not know it. */
  readonly sender?: string
}

/** What a request carries. */
export type Presented = SignedPayment | NativeProof

export function isNative(payment: Payment): payment is NativePayment {
  return 'transaction' in payment.payload
}

export type PaymentRequired = {
  /** Value of the header PAYMENT-REQUIRED (version 2). */
  readonly header: string
  /** The reply's body (version 1). */
  readonly body: { readonly x402Version: 1; readonly error: string; readonly accepts: object[] }
}

/** What a payer is told about a settlement. */
export type SettlementNotice = {
  readonly success: boolean
  /** Hash of the transaction, empty when none was sent. */
  readonly transaction: string
  readonly network: PaymentNetwork
  readonly payer: string
  readonly amount: bigint
  readonly errorReason?: string
  readonly blockNumber?: bigint
  /** ISO 8601. */
  readonly confirmedAt?: string
}

/** The answer of a 402 in both versions at once: version 2 clients take the header, older ones the body. */
export function buildPaymentRequired(offer: {
  readonly resource: Resource
  readonly requirements: readonly Requirement[]
  readonly error: string
}): PaymentRequired {
  const { resource, requirements, error } = offer
  const accepts = requirements.map((requirement) => acceptsEntry(requirement))
  return {
    header: base64({ x402Version: 2, error, resource, accepts }),
    body: {
      x402Version: 1,
      error,
      accepts: requirements.flatMap((requirement) => entriesV1(requirement, resource)),
    },
  }
}

/** One way to pay, as version 2 writes it in `accepts` and facilitators take it as paymentRequirements. */
export function acceptsEntry(requirement: Requirement): Readonly<Record<string, unknown>> {
  const { network, amount, maxTimeoutSeconds } = requirement
  return {
    scheme: 'exact',
    network: network.id,
    amount: amount.toString(),
    asset: network.asset.address,
    payTo: network.payTo,
    maxTimeoutSeconds,
    extra: extra(requirement, 'x402-facilitator'),
  }
}

/** Name and value of the response header that tells the payer about its settlement. */
export function encodeSettlement(
  payment: Pick<Payment, 'version' | 'receiptForm'>,
  notice: SettlementNotice,
): { readonly name: string; readonly value: string } {
  const { success, transaction, network, payer, amount, errorReason } = notice
  const receipt = {
    success,
    transaction,
    network: payment.version === 1 ? network.v1Name : network.id,
    payer,
    amount: amount.toString(),
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

/** Stock clients take the first entry of a network; a plain transfer is for those that ask for it. */
function entriesV1(requirement: Requirement, resource: Resource): object[] {
  const { network, depositAddress } = requirement
  const signed = { payTo: network.payTo, method: 'x402-facilitator' } as const
  if (depositAddress === undefined) return [entryV1(requirement, resource, signed)]
  const native = { payTo: depositAddress, method: 'native' } as const
  return [signed, native].map((way) => entryV1(requirement, resource, way))
}

type PaymentMethod = 'x402-facilitator' | 'native'

/** Old clients refuse the whole answer where one field is missing, null or of another type. */
function entryV1(
  requirement: Requirement,
  resource: Resource,
  way: { payTo: string; method: PaymentMethod },
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
    payTo: way.payTo,
    maxTimeoutSeconds,
    asset: network.asset.address,
    extra: extra(requirement, way.method),
  }
}

function extra(
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
    pricing: { baseAmount: amount.toString(), baseAsset: network.asset.symbol, expiresAt },
  }
}

/** Headers carry ASCII only, so the JSON text goes as base64 of its UTF-8. */
function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}
