import type { PaymentNetwork } from '../../x402/networks.ts'
import {
  isNative,
  type NativePayment,
  type Payment,
  type SignedPayment,
} from '../../x402/protocol.ts'

/** A payment as its claim keeps it. */
export function paymentText(payment: Payment): string {
  return JSON.stringify(payment, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  )
}

type Texts<T> = { readonly [K in keyof T]: T[K] extends bigint ? string : T[K] }
type Stored<P extends Payment> = Omit<P, 'payload' | 'accepted'> & {
  readonly payload: Texts<P['payload']>
}

/** The payment that `paymentText` wrote. What it said it accepts was checked then and is not needed again. */
export function storedPayment(text: string): Payment {
  const stored: Stored<SignedPayment> | Stored<NativePayment> = JSON.parse(text)
  const { version, network, scheme, receiptForm, quoteId } = stored
  const envelope = {
    version,
    network,
    scheme,
    receiptForm,
    ...(quoteId !== undefined && { quoteId }),
  }
  if ('transaction' in stored.payload) return { ...envelope, payload: transferOf(stored.payload) }
  const origin = 'origin' in stored ? stored.origin : undefined
  return {
    ...envelope,
    payload: authorizationOf(stored.payload),
    ...(origin !== undefined && { origin }),
  }
}

function authorizationOf(payload: Texts<SignedPayment['payload']>): SignedPayment['payload'] {
  return {
    ...payload,
    value: BigInt(payload.value),
    validAfter: BigInt(payload.validAfter),
    validBefore: BigInt(payload.validBefore),
  }
}

function transferOf(payload: Texts<NativePayment['payload']>): NativePayment['payload'] {
  return {
    ...payload,
    value: BigInt(payload.value),
    blockNumber: BigInt(payload.blockNumber),
    blockTime: BigInt(payload.blockTime),
  }
}

/**
 * Names a payment for ever: the token takes each nonce of a payer once, and a chain has each log of a transaction
 * once.
 */
export function identityOf(network: PaymentNetwork, payment: Payment): string {
  const name = isNative(payment)
    ? `${payment.payload.transaction}:${payment.payload.logIndex}`
    : payment.payload.nonce
  return `${network.id}/${network.asset.address}/${payment.payload.from}/${name}`
}

/** Names a transfer by what is known of it before the chain is asked; see `bondOf`. */
export function transferName(network: string, transaction: string, bond: string): string {
  return `${network}/${transaction}/${bond}`
}

/** The address that makes a transfer this payer's: that of his quote, or, where he has none, his own. */
export function bondOf({ quoteId, payload }: NativePayment): string {
  return quoteId === undefined ? payload.from : payload.to
}

/** Names a payment as it was sent, and by whom. */
export function proofOf(payment: Payment): string {
  return [signedText(payment), ...secretsOf(payment)].join(' ')
}

/**
 * Whether a payment is the stored one, repeated by somebody who may have what it bought. All that is signed can be read
 * from the chain by anybody once it is settled. What others cannot have is the quote, which only its buyer was told;
 * where there is none, as in version 1, the same address, key or wallet must have sent both; or the payer signs the
 * request.
 */
export function isRepetition(
  stored: string,
  { payment, isPayer }: { payment: Payment; isPayer: boolean },
): boolean {
  const before = storedPayment(stored)
  if (signedText(before) !== signedText(payment)) return false
  const known = secretsOf(before)
  return isPayer || secretsOf(payment).some((secret) => known.includes(secret))
}

function signedText(payment: Payment): string {
  if (isNative(payment)) return payment.payload.transaction
  const { from, to, value, validAfter, validBefore, nonce, signature } = payment.payload
  return [from, to, value, validAfter, validBefore, nonce, signature].join(' ')
}

/**
 * Any one of them is enough. Each says what it is: a client writes its quote as it likes, and what is reckoned from an
 * address or a wallet anybody can reckon.
 */
function secretsOf(payment: Payment): readonly string[] {
  if (payment.quoteId !== undefined) return [`quote ${payment.quoteId}`]
  const origin = 'origin' in payment ? payment.origin : undefined
  return (origin ?? '').split(' ').map((name) => `origin ${name}`)
}
