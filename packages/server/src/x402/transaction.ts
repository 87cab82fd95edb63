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

/** Reads a transaction of ours from its bytes. */
export function parseTransaction(raw: Buffer): Transaction {
  let at = readPrefix(raw, 1).start
  const take = () => {
    const { start, end } = readPrefix(raw, at)
    at = end
    return raw.subarray(start, end).toString('hex')
  }
  const takeNumber = () => BigInt(`0x0${take()}`)
  const chainId = Number(takeNumber())
  const nonce = takeNumber()
  const maxPriorityFeePerGas = takeNumber()
  const maxFeePerGas = takeNumber()
  const gas = takeNumber()
  const to = `0x${take()}`
  // The value, which is nothing.
  take()
  return { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas, to, data: `0x${take()}` }
}

function readPrefix(raw: Buffer, at: number): { readonly start: number; readonly end: number } {
  const first = raw[at] ?? 0
  if (first < 0x80) return { start: at, end: at + 1 }
  const short = first - (first >= 0xc0 ? 0xc0 : 0x80)
  if (short < 56) return { start: at + 1, end: at + 1 + short }
  const start = at + 1 + short - 55
  return { start, end: start + Number(`0x0${raw.toString('hex', at + 1, start)}`) }
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
