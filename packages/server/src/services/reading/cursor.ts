import { createHmac, timingSafeEqual } from 'node:crypto'
import { assert } from '../../base/assert.ts'

/** Where a list goes on: a moment of the application's chain, and how far the pages up to here came. */
export type Cursor = {
  /** Seconds since 1970; the same for all pages of a list. */
  readonly expiresAt: number
  /** The position that the first page was read at, and the leaves of the chain up to there. */
  readonly height: number
  readonly sequence: number
  readonly size: number
  /** Leaf of the last row that was given. */
  readonly last: number
  /** Rows before the next page, an offset included. */
  readonly given: number
  /** Rows of the whole list, where the caller was told. */
  readonly total: number | undefined
}

const numberBytes = 6
const numbersCount = 7
const macBytes = 16
const form = /^[A-Za-z0-9_-]{78}$/

/**
 * Encodes a cursor, which needs no row in the database: seven numbers of 48 bits and 128 bits of HMAC-SHA-256 over
 * them and the scope, in base64url. The scope is a text that names the list; for any other list the cursor is
 * invalid. It holds no value of a record, since the caller may not be allowed to see the field that rows are sorted
 * by.
 */
export function encodeCursor(secret: Uint8Array, cursor: Cursor, scope: string): string {
  const { expiresAt, height, sequence, size, last, given, total } = cursor
  const numbers = Buffer.alloc(numberBytes * numbersCount)
  const all = [expiresAt, height, sequence, size, last, given, total === undefined ? 0 : total + 1]
  all.forEach((number, at) => {
    numbers.writeUIntBE(number, at * numberBytes, numberBytes)
  })
  return Buffer.concat([numbers, computeMac(secret, numbers, scope)]).toString('base64url')
}

/**
 * Decodes the cursor; undefined where this service did not issue it for this scope. An expired one is still
 * decoded: the caller, who knows the time, decides whether it counts.
 */
export function decodeCursor(secret: Uint8Array, text: string, scope: string): Cursor | undefined {
  if (!form.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  // The last character carries four unused bits; only one spelling of a cursor is valid.
  if (bytes.toString('base64url') !== text) return undefined
  const numbers = bytes.subarray(0, numberBytes * numbersCount)
  if (!timingSafeEqual(computeMac(secret, numbers, scope), bytes.subarray(numbers.length)))
    return undefined
  const at = (place: number) => numbers.readUIntBE(place * numberBytes, numberBytes)
  const total = at(6)
  return {
    expiresAt: at(0),
    height: at(1),
    sequence: at(2),
    size: at(3),
    last: at(4),
    given: at(5),
    total: total === 0 ? undefined : total - 1,
  }
}

function computeMac(secret: Uint8Array, numbers: Buffer, scope: string): Buffer {
  assert(secret.length >= 32, 'the secret of cursors has 32 bytes')
  // The numbers are of one length, so there is no doubt about where the scope begins.
  const text = createHmac('sha256', secret).update('tollbase cursor 1').update(numbers)
  return text.update(scope).digest().subarray(0, macBytes)
}
