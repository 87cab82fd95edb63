import { createHmac, timingSafeEqual } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import { assert } from '../base/assert.ts'
import { isAddress } from './hex.ts'

/**
 * The scope that a quote is bound to beyond its own price: it is worth nothing for another request or another way
 * to pay.
 */
export type QuoteScope = {
  /** Identifies the request exactly (`hashPaidRequest`: method, path, query, body); any text. */
  readonly requestHash: string
  /** CAIP-2. */
  readonly network: string
  readonly asset: string
  readonly payTo: string
}

export type Quote = {
  /** Atomic units. */
  readonly cap: bigint
  /** Seconds since 1970. */
  readonly expiresAt: number
  /** Identifies what the request resolves to; made by `digestMeaning`. */
  readonly meaning: string
  /** The prices behind the cap: up to `quoteTermsCharsMax` of `a-z 0-9 _ -`. */
  readonly terms: string
}

export const quoteTermsCharsMax = 600
/** The length of a whole quote, a salt included: it goes through headers. */
export const quoteIdCharsMax = 800

const macBytes = 16
const digestBytes = 12
const form =
  /^q2\.([0-9a-z]{1,11})\.([0-9a-z]{1,16})\.([A-Za-z0-9_-]{16})\.([0-9a-z_-]{0,600})\.([A-Za-z0-9_-]{22})$/

/**
 * Issues a quote that needs no row: q2.<expiry>.<cap>.<meaning>.<terms>.<MAC>, numbers in base 36, the MAC 128
 * bits of HMAC-SHA-256 over all before it and the scope. Safe in URLs and headers.
 */
export function issueQuote(secret: Uint8Array, quote: Quote & QuoteScope): string {
  const { cap, expiresAt, meaning, terms } = quote
  assert(cap >= 0n && cap <= limits.amountAtomicMax, 'a quoted cap is in range')
  assert(Number.isSafeInteger(expiresAt) && expiresAt >= 0, 'an expiry is in whole seconds')
  const promise = [expiresAt.toString(36), cap.toString(36), meaning, terms].join('.')
  const issued = `q2.${promise}.${mac(secret, promise, quote).toString('base64url')}`
  assert(form.test(issued), 'a quote has its form')
  return issued
}

/**
 * Reads the quote; undefined if this service did not issue it for this scope. An expired quote is still read: the
 * caller knows the time and decides whether it counts.
 */
export function readQuote(
  secret: Uint8Array,
  quoteId: string,
  scope: QuoteScope,
): Quote | undefined {
  const [, expiry, cap, meaning, terms = '', given] = form.exec(quoteId) ?? []
  if (!expiry || !cap || !meaning || !given) return undefined
  const expected = mac(secret, [expiry, cap, meaning, terms].join('.'), scope)
  const received = Buffer.from(given, 'base64url')
  // The last character carries two unused bits; only one spelling of a quote is valid.
  if (received.toString('base64url') !== given) return undefined
  if (!timingSafeEqual(expected, received)) return undefined
  return {
    cap: parseBase36(cap),
    expiresAt: Number.parseInt(expiry, 36),
    meaning,
    terms,
  }
}

/** Computes 96 bits of HMAC-SHA-256 in base64url: without the secret nobody finds two texts of one digest. */
export function digestMeaning(secret: Uint8Array, text: string): string {
  const hmac = createHmac('sha256', secret).update(`tollbase meaning 1\n${text}`)
  return hmac.digest().subarray(0, digestBytes).toString('base64url')
}

function mac(secret: Uint8Array, promise: string, scope: QuoteScope): Buffer {
  assert(secret.length >= 32, 'the secret of quotes has 32 bytes')
  assert(isAddress(scope.asset) && isAddress(scope.payTo), 'a quote names lower-case addresses')
  // JSON separates the texts unambiguously.
  const { requestHash, network, asset, payTo } = scope
  const text = JSON.stringify(['tollbase quote 2', promise, requestHash, network, asset, payTo])
  return createHmac('sha256', secret).update(text).digest().subarray(0, macBytes)
}

export function parseBase36(digits: string): bigint {
  let value = 0n
  for (const digit of digits) value = value * 36n + BigInt(Number.parseInt(digit, 36))
  return value
}
