import { createHash } from 'node:crypto'
import { hashRequest } from '@tollbase/verify/receipt'
import { Fault, makeInvalidFault } from '../../../base/fault.ts'
import { isRecord } from '../../../base/is-record.ts'
import { removeMembers } from '../../../base/json-text.ts'
import { findSingleHeader, type RequestInfo } from '../../../http/request-info.ts'
import { type ChannelPayment, isChannelPayment } from '../../../x402/channels/channel-payment.ts'
import { findNetworkId } from '../../../x402/networks.ts'
import { decodePayment, parseNativeProof } from '../../../x402/payment-header.ts'
import type { NativeProof, Payment, PresentedPayment } from '../../../x402/protocol.ts'
import type { Caller } from '../../access/access.ts'

/**
 * Finds the payment that the request carries: in a header, of which two of one kind are refused, or else, as the
 * PHP and Python clients send it, among the members of a store's body.
 */
export function findPresentedPayment(
  asking: Asking,
): PresentedPayment | ChannelPayment | undefined {
  const { requestInfo, caller } = asking
  const known = presentedPayments.get(requestInfo)
  if (known?.caller === caller) return known.presented
  const presented = readPresentedPayment(asking)
  presentedPayments.set(requestInfo, { caller, presented })
  return presented
}

/** Several parts of a sale ask for the payment of the same request, which takes long to read. */
const presentedPayments = new WeakMap<
  RequestInfo,
  { readonly caller: Caller; readonly presented: PresentedPayment | ChannelPayment | undefined }
>()

function readPresentedPayment({
  requestInfo,
  caller,
}: Asking): PresentedPayment | ChannelPayment | undefined {
  const xPayment = findSingleHeader(requestInfo, 'x-payment')
  const paymentSignature = findSingleHeader(requestInfo, 'payment-signature')
  const decoded = decodePayment({
    ...(xPayment !== undefined && { xPayment }),
    ...(paymentSignature !== undefined && { paymentSignature }),
  })
  if (decoded === undefined) return findBodyProof(requestInfo)
  if (isChannelPayment(decoded)) return decoded
  if ('transaction' in decoded || decoded.quoteId !== undefined) return decoded
  return { ...decoded, origin: hashSender({ requestInfo, caller }, decoded.payload.nonce) }
}

/** A request, and its caller. */
export type Asking = { readonly requestInfo: RequestInfo; readonly caller: Caller }

/**
 * Returns true if the request carries a payment, good or not. Unreadable content is no payment: clients fill in
 * something where nothing is owed, and it cannot have bought anything.
 */
export function hasPayment(asking: Asking): boolean {
  try {
    return findPresentedPayment(asking) !== undefined
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

const wishes = ['on', 'off']

/** Returns false where the request says that it is not to be paid from a balance; 400 where it says anything else. */
export function canUseBalance(requestInfo: RequestInfo): boolean {
  const wish = findSingleHeader(requestInfo, 'x-balance') ?? 'on'
  if (!wishes.includes(wish))
    throw makeInvalidFault('/headers/x-balance', 'must be "off", or be left out')
  return wish !== 'off'
}

/** Returns true if the payer signed the request itself: nobody has a better claim to what the payment bought. */
export function isByPayer({ caller }: Asking, { payload }: Payment): boolean {
  return caller.kind === 'wallet' && caller.address === payload.from
}

/**
 * Hashes the properties by which the sender of a request is recognized: address, and key or wallet. None is stored
 * as it is.
 */
export function hashSender({ requestInfo, caller }: Asking, nonce: string): string {
  const names = [requestInfo.remoteAddress]
  if (caller.kind === 'key') names.push(`key ${caller.key.key_hash}`)
  if (caller.kind === 'wallet') names.push(`wallet ${caller.address}`)
  return names
    .map((name) => createHash('sha256').update(`${nonce} ${name}`).digest('base64url'))
    .join(' ')
}

/**
 * Hashes the request, byte for byte; a payment is bound to this hash. A proof in the body is left out, so that the
 * quote of the first try, which came without a proof, is good for the second.
 */
export function hashPaidRequest(requestInfo: RequestInfo): string {
  const known = hashes.get(requestInfo)
  if (known !== undefined) return known
  const hash = hashRequest({
    // A HEAD and the GET of the same are one purchase.
    method: requestInfo.method === 'HEAD' ? 'GET' : requestInfo.method,
    path: requestInfo.path,
    query: requestInfo.queryText,
    body: getBodyWithoutProof(requestInfo),
  })
  hashes.set(requestInfo, hash)
  return hash
}

/** Several parts of a sale ask for the hash of the same request. */
const hashes = new WeakMap<RequestInfo, string>()

/** Long bodies take a while to cut, and several parts of a sale ask for the same one. */
const cutBodies = new WeakMap<RequestInfo, Buffer>()

/** Returns the body without the proof of payment that was put into it. */
export function getBodyWithoutProof(requestInfo: RequestInfo): Buffer {
  const body = getBodyMembers(requestInfo)
  if (!proofMembers.some((name) => Object.hasOwn(body, name))) return requestInfo.bodyBytes
  const cut =
    cutBodies.get(requestInfo) ?? Buffer.from(removeMembers(requestInfo.json().text, proofMembers))
  cutBodies.set(requestInfo, cut)
  return cut
}

/** All that the public clients put into the body of a paid store; none of it is stored. */
export const proofMembers: readonly string[] = [
  'payment_tx_hash',
  'amount_utia',
  'user_address',
  'broker_address',
  'payment_network',
  'payment_mode',
  'quote_id',
  'quoteId',
]

/** Finds the proof in the body. The body also states the amount and the payee, but the chain knows them better. */
function findBodyProof(requestInfo: RequestInfo): NativeProof | undefined {
  const body = getBodyMembers(requestInfo)
  const transaction = getMemberText(body, 'payment_tx_hash')
  if (transaction === '') return undefined
  const quoteId = getMemberText(body, 'quote_id') || getMemberText(body, 'quoteId')
  return parseNativeProof({
    network: findNetworkId(getMemberText(body, 'payment_network')),
    quoteId,
    transaction,
    sender: getMemberText(body, 'user_address'),
    names: { transaction: 'payment_tx_hash', sender: 'user_address' },
  })
}

type Members = Readonly<Record<string, unknown>>

/**
 * Members of a body that may carry a proof. Only a store's and an upload's may: all others say what is asked, and
 * nothing else.
 */
function getBodyMembers(requestInfo: RequestInfo): Members {
  const isStore = requestInfo.method === 'POST' && requestInfo.path === '/store'
  if (!isStore && requestInfo.upload === undefined) return {}
  const { value } = requestInfo.json()
  return isRecord(value) ? value : {}
}

/** Clients write '' or null for what they do not have. */
function getMemberText(body: Members, name: string): string {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  return typeof value === 'string' ? value : ''
}
