import { keccak_256 } from '@noble/hashes/sha3.js'
import { assert } from '../base/assert.ts'

/** Hexadecimal text is lower case with 0x everywhere inside the service. */
const hexOf = { address: /^0x[0-9a-f]{40}$/, hash: /^0x[0-9a-f]{64}$/ }

/** True for a lower-case address, which has 20 bytes. */
export function isAddress(text: string): boolean {
  return hexOf.address.test(text)
}

/** True for 32 bytes in lower-case hexadecimal: a transaction hash, a nonce. */
export function isHash(text: string): boolean {
  return hexOf.hash.test(text)
}

export function bytesOf(hex: string): Buffer {
  assert(/^0x([0-9a-f]{2})*$/.test(hex), 'hexadecimal text is lower case with 0x')
  return Buffer.from(hex.slice(2), 'hex')
}

export function hexFrom(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}`
}

/** A number as JSON-RPC writes quantities: no leading zeros. */
export function quantity(value: bigint | number): string {
  return `0x${value.toString(16)}`
}

export function keccak(bytes: Uint8Array): Uint8Array {
  return keccak_256(bytes)
}

/** The 32-byte word of the Solidity ABI for an unsigned number, without 0x. */
export function numberWord(value: bigint | number): string {
  const digits = value.toString(16)
  assert(digits.length <= 64 && !digits.startsWith('-'), 'a number of the ABI has 256 bits')
  return digits.padStart(64, '0')
}

/** The 32-byte word of the Solidity ABI for an address or a bytes32, without 0x. */
export function hexWord(hex: string): string {
  assert(isAddress(hex) || isHash(hex), 'a word is an address or 32 bytes')
  return hex.slice(2).padStart(64, '0')
}

/** The first four bytes of the hash of a function's signature. */
export function selector(signature: string): string {
  return hexFrom(keccak(Buffer.from(signature))).slice(0, 10)
}

/** The first topic of an event's logs. */
export function eventTopic(signature: string): string {
  return hexFrom(keccak(Buffer.from(signature)))
}
