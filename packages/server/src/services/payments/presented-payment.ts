import { createHash } from 'node:crypto'
import { requestHash } from '@tollbase/verify/receipt'
import { Fault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { withoutMembers } from '../../base/json-text.ts'
import { oneHeader, type RequestFacts } from '../../http/request-info.ts'
import { networkIdOf } from '../../x402/networks.ts'
import { decodePayment, nativeProof } from '../../x402/payment-header.ts'
import type { NativeProof, Payment, Presented } from '../../x402/protocol.ts'
import type { Caller } from '../access/access.ts'

/**
 * The payment that the request carries, if any: in a header, of which two of one kind are refused, or else, as the
 * PHP and Python clients do, among the members of a store's body.
 */
export function presentedOf({ facts, caller }: Asking): Presented | undefined {
  const xPayment = oneHeader(facts, 'x-payment')
  const paymentSignature = oneHeader(facts, 'payment-signature')
  const decoded = decodePayment({
    ...(xPayment !== undefined && { xPayment }),
    ...(paymentSignature !== undefined && { paymentSignature }),
  })
  if (decoded === undefined) return proofInBody(facts)
  if ('transaction' in decoded || decoded.quoteId !== undefined) return decoded
  return { ...decoded, origin: originOf({ facts, caller }, decoded.payload.nonce) }
}

/** A request, and who sends it. */
export type Asking = { readonly facts: RequestFacts; readonly caller: Caller }

/**
 * Whether the request brings a payment, good or not. What cannot be read as one is none: clients fill in something
 * where nothing is owed, and that can have bought nothing.
 */
export function carriesPayment(asking: Asking): boolean {
  try {
    return presentedOf(asking) !== undefined
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

/** Whether the one who pays signed the request itself: nobody has a better claim to what was bought. */
export function isByPayer({ caller }: Asking, { payload }: Payment): boolean {
  return caller.kind === 'wallet' && caller.address === payload.from
}

/** By what the sender of a request is known again, none of it written down as it is: his address, and his key or wallet. */
function originOf({ facts, caller }: Asking, nonce: string): string {
  const names = [facts.remoteAddress]
  if (caller.kind === 'key') names.push(`key ${caller.key.key_hash}`)
  if (caller.kind === 'wallet') names.push(`wallet ${caller.address}`)
  return names
    .map((name) => createHash('sha256').update(`${nonce} ${name}`).digest('base64url'))
    .join(' ')
}

/**
 * What a payment is bound to: the request, byte for byte. A proof in the body is no part of it, so that the quote of
 * the first try, which came without, is good for the second.
 */
export function requestHashOf(facts: RequestFacts): string {
  return requestHash({
    method: facts.method,
    path: facts.path,
    query: facts.queryText,
    body: bodyWithoutProof(facts),
  })
}

/** The body as it was, or would have been, before a proof of payment was put into it. */
export function bodyWithoutProof(facts: RequestFacts): Buffer {
  const body = bodyOf(facts)
  if (!proofMembers.some((name) => Object.hasOwn(body, name))) return facts.bodyBytes
  return Buffer.from(withoutMembers(facts.json().text, proofMembers))
}

/** All that the public clients put into the body of a paid store; none of it is stored. */
const proofMembers: readonly string[] = [
  'payment_tx_hash',
  'amount_utia',
  'user_address',
  'broker_address',
  'payment_network',
  'payment_mode',
  'quote_id',
  'quoteId',
]

/** How much was paid, and to whom, is said there too, but the chain knows better. */
function proofInBody(facts: RequestFacts): NativeProof | undefined {
  const body = bodyOf(facts)
  const transaction = textOf(body, 'payment_tx_hash')
  if (transaction === '') return undefined
  const quoteId = textOf(body, 'quote_id') || textOf(body, 'quoteId')
  return nativeProof({
    network: networkIdOf(textOf(body, 'payment_network')),
    quoteId,
    transaction,
    sender: textOf(body, 'user_address'),
    names: { transaction: 'payment_tx_hash', sender: 'user_address' },
  })
}

type Members = Readonly<Record<string, unknown>>

/** Members of a body that may carry a proof. Only a store's may: all others say what is asked, and nothing else. */
function bodyOf(facts: RequestFacts): Members {
  if (facts.method !== 'POST' || facts.path !== '/store') return {}
  const { value } = facts.json()
  return isRecord(value) ? value : {}
}

/** Clients write '' or null for what they do not have. */
function textOf(body: Members, name: string): string {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  return typeof value === 'string' ? value : ''
}
