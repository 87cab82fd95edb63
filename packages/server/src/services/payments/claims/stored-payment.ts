import type { PaymentNetwork } from '../../../x402/networks.ts'
import {
  isNative,
  type NativePayment,
  type Payment,
  type SignedPayment,
} from '../../../x402/protocol.ts'
import { isUpto } from '../../../x402/upto/upto.ts'
import type { UptoTerms } from '../../../x402/upto/upto-terms.ts'

/** The end of a payment by a channel or out of a balance; one of a payer may be later, if it was used before it came. */
export const neverEnds = 10n ** 15n

/** Returns false for a payment by a channel or out of a balance: no network knows it, and it pays to no address. */
export function hasOwnMoney(payment: Payment): boolean {
  return isNative(payment) || payment.payload.to !== ''
}

/** A payment as its claim keeps it. */
export function encodeStoredPayment(payment: Payment): string {
  return JSON.stringify(payment, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  )
}

type Texts<T> = { readonly [K in keyof T]: T[K] extends bigint ? string : T[K] }
type Stored<P extends Payment> = Omit<P, 'payload' | 'accepted' | 'upto' | 'channel'> & {
  readonly payload: Texts<P['payload']>
  readonly upto?: Texts<UptoTerms>
  readonly channel?: Texts<NonNullable<SignedPayment['channel']>>
}

/**
 * Decodes the payment that `encodeStoredPayment` wrote, without the requirement it accepted, which was checked then
 * and is not needed again.
 */
export function decodeStoredPayment(text: string): Payment {
  const stored: Stored<SignedPayment> | Stored<NativePayment> = JSON.parse(text)
  const { version, network, scheme, receiptForm, quoteId } = stored
  const envelope = {
    version,
    network,
    scheme,
    receiptForm,
    ...(quoteId !== undefined && { quoteId }),
  }
  if ('transaction' in stored.payload)
    return { ...envelope, payload: decodeTransfer(stored.payload) }
  const origin = 'origin' in stored ? stored.origin : undefined
  const { upto, channel } = stored
  return {
    ...envelope,
    payload: decodeAuthorization(stored.payload),
    ...(origin !== undefined && { origin }),
    ...(upto !== undefined && { upto: { ...upto, permitted: BigInt(upto.permitted) } }),
    ...(channel && { channel: { ...channel, maxClaimable: BigInt(channel.maxClaimable) } }),
  }
}

function decodeAuthorization(payload: Texts<SignedPayment['payload']>): SignedPayment['payload'] {
  return {
    ...payload,
    value: BigInt(payload.value),
    validAfter: BigInt(payload.validAfter),
    validBefore: BigInt(payload.validBefore),
  }
}

function decodeTransfer(payload: Texts<NativePayment['payload']>): NativePayment['payload'] {
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
export function getPaymentIdentity(network: PaymentNetwork, payment: Payment): string {
  const name = isNative(payment)
    ? `${payment.payload.transaction}:${payment.payload.logIndex}`
    : payment.payload.nonce
  return `${network.id}/${network.asset.address}/${payment.payload.from}/${name}`
}

/** A payer's name for a payment belongs to its address. */
export type PaymentName = readonly [payer: string, identifier: string]

/** Finds the name of a payment; undefined where it has none, or its scheme ignores it. */
export function findPaymentName(payment: Payment): PaymentName | undefined {
  if (isNative(payment) || isUpto(payment) || payment.identifier === undefined) return undefined
  return [payment.payload.from, payment.identifier]
}

/** Formats the name of a transfer from what is known of it before the chain is asked; see `getPayerBinding`. */
export function formatTransferName(network: string, transaction: string, binding: string): string {
  return `${network}/${transaction}/${binding}`
}

/** Returns the address that binds a transfer to this payer: that of the quote, or, without one, the payer's own. */
export function getPayerBinding({ quoteId, payload }: NativePayment): string {
  return quoteId === undefined ? payload.from : payload.to
}

/** Formats a payment as it was sent, with its sender. */
export function formatPaymentProof(payment: Payment): string {
  return [formatSignedText(payment), ...listSecrets(payment)].join(' ')
}

/**
 * Returns true if a payment repeats the stored one and comes from somebody who may have what it bought. All that is
 * signed can be read from the chain by anybody once it is settled. Others cannot have the quote, which only its
 * buyer was told; without one, as in version 1, both must have come from the same address, key or wallet; or the
 * payer signs the request.
 */
export function isRepetition(
  stored: string,
  { payment, isPayer }: { payment: Payment; isPayer: boolean },
): boolean {
  const before = decodeStoredPayment(stored)
  if (formatSignedText(before) !== formatSignedText(payment)) return false
  return isPayer || isFromSender(before, payment)
}

/** Returns true if both payments come from the same address, key or wallet, or from one who was told the same quote. */
function isFromSender(before: Payment, payment: Payment): boolean {
  const known = listSecrets(before)
  return listSecrets(payment).some((secret) => known.includes(secret))
}

/** The same of a payment as its claim keeps it. */
export function isFromSenderOf(stored: string, payment: Payment): boolean {
  return isFromSender(decodeStoredPayment(stored), payment)
}

function formatSignedText(payment: Payment): string {
  if (isNative(payment)) return payment.payload.transaction
  const { from, to, validAfter, validBefore, nonce, signature } = payment.payload
  // The value of a permit is decided after it was signed.
  const value = payment.upto?.permitted ?? payment.payload.value
  return [from, to, value, validAfter, validBefore, nonce, signature].join(' ')
}

/**
 * Lists the secrets of a payment, of which any one is enough. Each names its kind: a client may write any text as
 * its quote, and anybody can compute a hash of an address or a wallet.
 */
function listSecrets(payment: Payment): readonly string[] {
  if (payment.quoteId !== undefined) return [`quote ${payment.quoteId}`]
  const origin = 'origin' in payment ? payment.origin : undefined
  return (origin ?? '').split(' ').map((name) => `origin ${name}`)
}
