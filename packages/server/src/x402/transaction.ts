import { curve } from './curve.ts'
import { decodeHex, encodeHex, hashKeccak } from './hex.ts'

/** An EIP-1559 transaction; amounts in wei. */
export type Transaction = {
  readonly chainId: number
  readonly nonce: bigint
  readonly maxPriorityFeePerGas: bigint
  readonly maxFeePerGas: bigint
  readonly gas: bigint
  readonly to: string
  readonly data: string
}

/** Returns the bytes to broadcast (EIP-2718 type 2) and their hash, which identifies the transaction on the chain. */
export function signTransaction(
  transaction: Transaction,
  key: Uint8Array,
): { readonly raw: Buffer; readonly hash: string } {
  const fields = [
    numberBytes(BigInt(transaction.chainId)),
    numberBytes(transaction.nonce),
    numberBytes(transaction.maxPriorityFeePerGas),
    numberBytes(transaction.maxFeePerGas),
    numberBytes(transaction.gas),
    decodeHex(transaction.to),
    Buffer.alloc(0),
    decodeHex(transaction.data),
  ].map(rlpBytes)
  const accessList = rlpList([])
  const { compact, recovery } = curve.sign(hashKeccak(envelope([...fields, accessList])), key)
  const signature = [
    numberBytes(BigInt(recovery)),
    withoutZeros(compact.subarray(0, 32)),
    withoutZeros(compact.subarray(32)),
  ].map(rlpBytes)
  const raw = envelope([...fields, accessList, ...signature])
  return { raw, hash: encodeHex(hashKeccak(raw)) }
}

function envelope(items: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.of(2), rlpList(items)])
}

/** Encodes bytes with the recursive-length prefix (Ethereum yellow paper, appendix B). */
function rlpBytes(bytes: Uint8Array): Buffer {
  if (bytes.length === 1 && (bytes[0] ?? 0) < 0x80) return Buffer.from(bytes)
  return Buffer.concat([rlpLength(0x80, bytes.length), bytes])
}

function rlpList(items: readonly Buffer[]): Buffer {
  const body = Buffer.concat(items)
  return Buffer.concat([rlpLength(0xc0, body.length), body])
}

function rlpLength(base: number, length: number): Buffer {
  if (length < 56) return Buffer.of(base + length)
  const digits = numberBytes(BigInt(length))
  return Buffer.concat([Buffer.of(base + 55 + digits.length), digits])
}

/** Encodes a number big endian without leading zeros; zero is empty. */
function numberBytes(value: bigint): Buffer {
  if (value === 0n) return Buffer.alloc(0)
  const hex = value.toString(16)
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
}

function withoutZeros(bytes: Uint8Array): Uint8Array {
  let zeros = 0
  while (zeros < bytes.length && bytes[zeros] === 0) zeros++
  return bytes.subarray(zeros)
}
