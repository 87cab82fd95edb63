import { keccak_256 } from '@noble/hashes/sha3.js'
import { assert } from '../base/assert.ts'

/** Hexadecimal text is lower case with 0x everywhere inside the service. */
const hexForms = { address: /^0x[0-9a-f]{40}$/, hash: /^0x[0-9a-f]{64}$/ }

/** Returns true for a lower-case address, which has 20 bytes. */
export function isAddress(text: string): boolean {
  return hexForms.address.test(text)
}

/** Returns true for 32 bytes in lower-case hexadecimal: a transaction hash, a nonce. */
export function isHash(text: string): boolean {
  return hexForms.hash.test(text)
}

export function decodeHex(hex: string): Buffer {
  assert(/^0x([0-9a-f]{2})*$/.test(hex), 'hexadecimal text is lower case with 0x')
  return Buffer.from(hex.slice(2), 'hex')
}

export function encodeHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}`
}

/** Encodes a number as a JSON-RPC quantity: no leading zeros. */
export function encodeQuantity(value: bigint | number): string {
  return `0x${value.toString(16)}`
}

export function hashKeccak(bytes: Uint8Array): Uint8Array {
  return keccak_256(bytes)
}

/** Encodes an unsigned number as a 32-byte word of the Solidity ABI, without 0x. */
export function encodeNumberWord(value: bigint | number): string {
  const digits = value.toString(16)
  assert(digits.length <= 64 && !digits.startsWith('-'), 'a number of the ABI has 256 bits')
  return digits.padStart(64, '0')
}

/** Encodes an address or a bytes32 as a 32-byte word of the Solidity ABI, without 0x. */
export function encodeHexWord(hex: string): string {
  assert(isAddress(hex) || isHash(hex), 'a word is an address or 32 bytes')
  return hex.slice(2).padStart(64, '0')
}

/** The bytes of a word of the Solidity ABI. */
export const wordBytes = 32

/**
 * Encodes items of different lengths for the Solidity ABI, each without 0x: their number, where each begins, and the
 * items.
 */
export function encodeArray(items: readonly string[]): string {
  let at = items.length * wordBytes
  const places = items.map((item) => {
    const place = encodeNumberWord(at)
    at += item.length / 2
    return place
  })
  return [encodeNumberWord(items.length), ...places, ...items].join('')
}

/** Encodes bytes for the Solidity ABI, without 0x: their number, and they themselves in whole words. */
export function encodeBytes(hex: string): string {
  const bytes = decodeHex(hex)
  const padded = Math.ceil(bytes.length / wordBytes) * wordBytes
  return `${encodeNumberWord(bytes.length)}${bytes.toString('hex').padEnd(padded * 2, '0')}`
}

/** Computes the first four bytes of the hash of a function's signature. */
export function computeSelector(signature: string): string {
  return encodeHex(hashKeccak(Buffer.from(signature))).slice(0, 10)
}

/** Computes the first topic of an event's logs. */
export function computeTopic(signature: string): string {
  return encodeHex(hashKeccak(Buffer.from(signature)))
}
