import { createHmac, timingSafeEqual } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import { assert } from '../base/assert.ts'
import { isAddress } from './hex.ts'

/** What a quote binds beyond its own price: it is worth nothing for another request or another way to pay. */
export type QuoteScope = {
  /** Names the request exactly (method, path, body, application); any text. */
  readonly requestHash: string
  /** CAIP-2. */
  readonly network: string
  readonly asset: string
  readonly payTo: string
}

export type Quote = {
  /** Atomic units. */
  readonly amount: bigint
  /** Version of the price rules that the amount follows. */
  readonly ruleVersion: number
  /** Seconds since 1970. */
  readonly expiresAt: number
}

const macBytes = 16
const form = /^q1\.([0-9a-z]{1,11})\.([0-9a-z]{1,11})\.([0-9a-z]{1,16})\.([A-Za-z0-9_-]{22})$/

/**
 * A quote that needs no row: q1.<expiry>.<rule version>.<amount>.<MAC>, numbers in base 36, the MAC
 * 128 bits of HMAC-SHA-256 over the numbers and the scope. Safe in URLs and headers.
 */
export function issueQuote(secret: Uint8Array, quote: Quote & QuoteScope): string {
  const { amount, ruleVersion, expiresAt } = quote
  assert(amount >= 0n && amount <= limits.amountAtomicMax, 'a quoted amount is in range')
  assert(Number.isSafeInteger(ruleVersion) && ruleVersion >= 0, 'a rule version counts from 0')
  assert(Number.isSafeInteger(expiresAt) && expiresAt >= 0, 'an expiry is in whole seconds')
  const numbers = [expiresAt, ruleVersion, amount].map((number) => number.toString(36)).join('.')
  return `q1.${numbers}.${mac(secret, numbers, quote).toString('base64url')}`
}

/**
 * What the quote promises; undefined where this service did not issue it for this scope. An expired
 * quote is still read: whether it counts is for the caller, who knows the time.
 */
export function readQuote(
  secret: Uint8Array,
  quoteId: string,
  scope: QuoteScope,
): Quote | undefined {
  const [, expiry, rule, amount, given] = form.exec(quoteId) ?? []
  if (!expiry || !rule || !amount || !given) return undefined
  const expected = mac(secret, `${expiry}.${rule}.${amount}`, scope)
  const received = Buffer.from(given, 'base64url')
  // The last character carries two unused bits; only one spelling of a quote is valid.
  if (received.toString('base64url') !== given) return undefined
  if (!timingSafeEqual(expected, received)) return undefined
  return {
    amount: bigintOf36(amount),
    ruleVersion: Number.parseInt(rule, 36),
    expiresAt: Number.parseInt(expiry, 36),
  }
}

function mac(secret: Uint8Array, numbers: string, scope: QuoteScope): Buffer {
  assert(secret.length >= 32, 'the secret of quotes has 32 bytes')
  assert(isAddress(scope.asset) && isAddress(scope.payTo), 'a quote names lower-case addresses')
  // JSON separates the texts without doubt about where one ends.
  const { requestHash, network, asset, payTo } = scope
  const text = JSON.stringify(['tollbase quote 1', numbers, requestHash, network, asset, payTo])
  return createHmac('sha256', secret).update(text).digest().subarray(0, macBytes)
}

function bigintOf36(digits: string): bigint {
  let value = 0n
  for (const digit of digits) value = value * 36n + BigInt(Number.parseInt(digit, 36))
  return value
}
