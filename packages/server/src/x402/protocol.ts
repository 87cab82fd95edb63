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

/** A payment header, read strictly; nothing in it has been checked against anything yet. */
export type Payment = {
  readonly version: 1 | 2
  /** CAIP-2. */
  readonly network: string
  readonly scheme: 'exact'
  /** Absent where the client does not echo it, as stock version 1 clients do not. */
  readonly quoteId?: string
  readonly accepted?: Accepted
  readonly payload: ExactPayment
  /**
   * How the client wants its receipt: version 1 clients that send a quoteId (the public SDK) parse
   * the header as JSON without decoding base64 first.
   */
  readonly receiptForm: 'base64' | 'json'
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
      accepts: requirements.map((requirement) => acceptsEntryV1(requirement, resource)),
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
    extra: extra(requirement),
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

/** Old clients refuse the whole answer where one field is missing, null or of another type. */
function acceptsEntryV1(requirement: Requirement, resource: Resource): object {
  const { network, amount, maxTimeoutSeconds } = requirement
  return {
    scheme: 'exact',
    network: network.v1Name,
    maxAmountRequired: amount.toString(),
    resource: resource.url,
    description: resource.description,
    mimeType: resource.mimeType,
    outputSchema: {},
    payTo: network.payTo,
    maxTimeoutSeconds,
    asset: network.asset.address,
    extra: extra(requirement),
  }
}

function extra(requirement: Requirement): Readonly<Record<string, unknown>> {
  const { network, amount, quoteId, expiresAt, costBreakdown } = requirement
  return {
    name: network.asset.name,
    version: network.asset.version,
    quoteId,
    chainType: 'evm',
    chainId: network.chainId,
    paymentMethod: 'x402-facilitator',
    tokenSymbol: network.asset.symbol,
    tokenDecimals: network.asset.decimals,
    ...(costBreakdown === undefined ? {} : { costBreakdown }),
    pricing: { baseAmount: amount.toString(), baseAsset: network.asset.symbol, expiresAt },
  }
}

/** Headers carry ASCII only, so the JSON text goes as base64 of its UTF-8. */
function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}
