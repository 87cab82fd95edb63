import type { IncomingHttpHeaders } from 'node:http'
import { limits } from '@tollbase/contract/limits'
import { channelScheme } from './channels/channel-offer.ts'
import type { ChannelPayment } from './channels/channel-payment.ts'
import { readChannelPayment } from './channels/read-channel-payment.ts'
import { findNetworkId } from './networks.ts'
import {
  type Fields,
  makeMalformedFault,
  parseHex,
  parseObject,
  parseText,
  parseUint,
  refuseOtherKeys,
} from './payment-fields.ts'
import { readPaymentIdentifier } from './payment-identifier.ts'
import type {
  Accepted,
  ExactPayment,
  NativeProof,
  PresentedPayment,
  SignedPayment,
} from './protocol.ts'
import { quoteIdCharsMax } from './quote.ts'
import { parseStrictJson, type StrictJson, StrictJsonError } from './strict-json.ts'
import { readUptoPayment } from './upto/read-upto-payment.ts'
import { uptoScheme } from './upto/upto-terms.ts'

export type PaymentHeaders = {
  /** X-PAYMENT (version 1). */
  readonly xPayment?: string | undefined
  /** PAYMENT-SIGNATURE (version 2). */
  readonly paymentSignature?: string | undefined
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Admission and sale both ask for the payment of the same request, which takes long to read. */
const decodedPayments = new WeakMap<IncomingHttpHeaders, PresentedPayment | ChannelPayment>()

/** Decodes the payment in the headers of a request, once; a header that came twice, or is empty, counts as none. */
export function decodeRequestPayment(
  headers: IncomingHttpHeaders,
): PresentedPayment | ChannelPayment | undefined {
  const known = decodedPayments.get(headers)
  if (known !== undefined) return known
  const [xPayment, paymentSignature] = [headers['x-payment'], headers['payment-signature']]
  const decoded = decodePayment({
    ...(isText(xPayment) && { xPayment }),
    ...(isText(paymentSignature) && { paymentSignature }),
  })
  if (decoded !== undefined) decodedPayments.set(headers, decoded)
  return decoded
}

function isText(value: string | string[] | undefined): value is string {
  return typeof value === 'string' && value !== ''
}

/**
 * Decodes the payment that a request carries; undefined if it carries none. Anything that two readers could
 * understand differently is a PAYMENT_MALFORMED that names the field, so nothing is half accepted.
 */
export function decodePayment(
  headers: PaymentHeaders,
): PresentedPayment | ChannelPayment | undefined {
  const { xPayment, paymentSignature } = headers
  if (xPayment !== undefined && paymentSignature !== undefined) {
    throw makeMalformedFault('PAYMENT-SIGNATURE', 'came together with X-PAYMENT; send one of them')
  }
  if (paymentSignature !== undefined) {
    const sent = parseHeader('PAYMENT-SIGNATURE', paymentSignature)
    const fields = parseObject(sent, 'payment')
    const scheme = findScheme(fields)
    if (scheme === channelScheme) return readChannelPayment(fields)
    return scheme === uptoScheme ? readUptoPayment(fields) : readPresented(sent, 2)
  }
  if (xPayment !== undefined) return readPresented(parseHeader('X-PAYMENT', xPayment), 1)
  return undefined
}

/** Finds the scheme of a payment of version 2; undefined where it states none. */
function findScheme({ x402Version, accepted }: Fields): StrictJson | undefined {
  if (x402Version !== 2 || accepted === undefined) return undefined
  return parseObject(accepted, 'accepted').scheme
}

/** Reads a payment that came as JSON in a body; `version` is the one stated beside it. */
export function readPresented(value: unknown, version: 1 | 2): PresentedPayment {
  // Every field is checked below; untyped JSON is never trusted by its type.
  const fields = parseObject(value as StrictJson, 'payment')
  if (fields.x402Version !== version)
    throw makeMalformedFault('x402Version', `must be the number ${version}`)
  return version === 1 ? readVersion1(fields) : readVersion2(fields)
}

function readVersion1(fields: Fields): PresentedPayment {
  requireExact(fields.scheme, 'scheme')
  const name = parseText(fields.network, 'network')
  const network = findNetworkId(name)
  const quoteId = fields.quoteId === undefined ? undefined : parseQuoteId(fields.quoteId, 'quoteId')
  const payload = parseObject(fields.payload, 'payload')
  if (payload.txHash !== undefined && payload.authorization === undefined)
    return readNative(payload, { network, quoteId })
  if (network === undefined)
    throw makeMalformedFault('network', 'is not a network of x402 version 1')
  return {
    version: 1,
    network,
    scheme: 'exact',
    ...(quoteId === undefined || quoteId === '' ? {} : { quoteId }),
    payload: readExact(fields.payload),
    receiptForm: quoteId === undefined ? 'base64' : 'json',
  }
}

/**
 * Reads the form of the public SDK, which names networks that are not ours if its user named none, and the sender
 * "unknown" if it does not know him.
 */
function readNative(
  payload: Fields,
  stated: { network: string | undefined; quoteId: string | undefined },
): NativeProof {
  refuseOtherKeys(payload, ['txHash', 'sender', 'timestamp'], 'payload')
  if (payload.timestamp !== undefined) parseUint(payload.timestamp, 'payload.timestamp')
  const sender = payload.sender === undefined ? '' : parseText(payload.sender, 'payload.sender')
  return parseNativeProof({
    ...stated,
    transaction: parseText(payload.txHash, 'payload.txHash'),
    sender,
    names: { transaction: 'payload.txHash', sender: 'payload.sender' },
  })
}

/** Parses a proof from its parts as a client wrote them; `names` are the client's names for them. */
export function parseNativeProof(given: {
  readonly network: string | undefined
  readonly quoteId: string | undefined
  readonly transaction: string
  readonly sender: string
  readonly names: { readonly transaction: string; readonly sender: string }
}): NativeProof {
  const { network, quoteId, transaction, sender, names } = given
  const hash = /^0x/i.test(transaction) ? transaction : `0x${transaction}`
  return {
    version: 1,
    scheme: 'exact',
    transaction: parseHex(hash, 32, names.transaction),
    receiptForm: 'json',
    ...(network !== undefined && { network }),
    ...(quoteId !== undefined && quoteId !== '' && { quoteId }),
    ...(/^0x/i.test(sender) && { sender: parseHex(sender, 20, names.sender) }),
  }
}

function readVersion2(fields: Fields): SignedPayment {
  const given = parseObject(fields.accepted, 'accepted')
  const accepted: Accepted = {
    scheme: requireExact(given.scheme, 'accepted.scheme'),
    network: parseText(given.network, 'accepted.network'),
    amount: parseUint(given.amount, 'accepted.amount'),
    asset: parseHex(given.asset, 20, 'accepted.asset'),
    payTo: parseHex(given.payTo, 20, 'accepted.payTo'),
  }
  if (!/^eip155:[1-9]\d{0,15}$/.test(accepted.network)) {
    throw makeMalformedFault('accepted.network', 'must be CAIP-2, such as eip155:8453')
  }
  const extra = given.extra === undefined ? undefined : parseObject(given.extra, 'accepted.extra')
  const quoteId =
    extra?.quoteId === undefined ? '' : parseQuoteId(extra.quoteId, 'accepted.extra.quoteId')
  const identifier = readPaymentIdentifier(fields)
  return {
    version: 2,
    network: accepted.network,
    scheme: 'exact',
    ...(identifier !== undefined && { identifier }),
    ...(quoteId === '' ? {} : { quoteId }),
    accepted,
    payload: readExact(fields.payload),
    receiptForm: 'base64',
  }
}

function readExact(value: StrictJson | undefined): ExactPayment {
  const payload = parseObject(value, 'payload')
  refuseOtherKeys(payload, ['signature', 'authorization'], 'payload')
  const given = parseObject(payload.authorization, 'payload.authorization')
  const at = (name: string) => `payload.authorization.${name}`
  refuseOtherKeys(
    given,
    ['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce'],
    'payload.authorization',
  )
  return {
    from: parseHex(given.from, 20, at('from')),
    to: parseHex(given.to, 20, at('to')),
    value: parseUint(given.value, at('value')),
    validAfter: parseUint(given.validAfter, at('validAfter')),
    validBefore: parseUint(given.validBefore, at('validBefore')),
    nonce: parseHex(given.nonce, 32, at('nonce')),
    signature: parseSignature(payload.signature),
  }
}

/** Parses a signature. Some wallets write the recovery bit as 0 or 1; the token's ecrecover takes 27 or 28 only. */
function parseSignature(value: StrictJson | undefined): string {
  const signature = parseHex(value, 65, 'payload.signature')
  const v = signature.slice(-2)
  if (v === '1b' || v === '1c') return signature
  if (v === '00' || v === '01') return `${signature.slice(0, -2)}${v === '00' ? '1b' : '1c'}`
  throw makeMalformedFault('payload.signature', 'must end in v = 27 or 28')
}

/** Parses the JSON of a header that brings a payment: base64, strictly. */
export function parseHeader(header: string, value: string): StrictJson {
  if (Buffer.byteLength(value) > limits.paymentHeaderBytesMax) {
    throw makeMalformedFault(header, `is longer than ${limits.paymentHeaderBytesMax} bytes`)
  }
  const bytes = Buffer.from(value, 'base64')
  // Node's decoder skips characters that it does not know (and takes base64url), so only encoding again proves the
  // text.
  if (value === '' || bytes.toString('base64') !== value) {
    throw makeMalformedFault(header, 'must be one base64 text (standard alphabet, padded)')
  }
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw makeMalformedFault(header, 'must be base64 of UTF-8 text')
  }
  try {
    return parseStrictJson(text)
  } catch (error) {
    if (error instanceof StrictJsonError) throw makeMalformedFault(header, error.message)
    throw error
  }
}

function requireExact(value: StrictJson | undefined, field: string): 'exact' {
  if (parseText(value, field) !== 'exact') throw makeMalformedFault(field, 'must be "exact"')
  return 'exact'
}

function parseQuoteId(value: StrictJson, field: string): string {
  const text = parseText(value, field)
  if (text.length > quoteIdCharsMax) {
    throw makeMalformedFault(field, `is longer than ${quoteIdCharsMax} characters`)
  }
  return text
}
