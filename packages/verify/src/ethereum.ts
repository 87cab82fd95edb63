import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { concat, encodeHex, FormatError } from './bytes.ts'

/** A signed transaction of an EVM chain, as read from its bytes. */
export type EvmTransaction = {
  /** Keccak-256 of the bytes, by which everybody names the transaction; 0x and lower case, as all that follows. */
  readonly hash: string
  readonly chainId: number
  /** The address whose key signed. */
  readonly sender: string
  /** The address that is called. */
  readonly to: string
  readonly data: Uint8Array
}

/** Computes Keccak-256, the hash of EVM chains, which is not SHA3-256. */
export function hashKeccak(bytes: Uint8Array): Uint8Array {
  return keccak_256(bytes)
}

const dynamicFeeType = 2
const addressBytes = 20
const fieldCount = 12

/**
 * Parses the bytes of a signed EIP-1559 transaction (EIP-2718 type 2), the only type that the service sends. Throws a
 * FormatError, also where the signature is of no key or is not in the one form that chains accept.
 */
export function parseEvmTransaction(raw: Uint8Array): EvmTransaction {
  if (raw[0] !== dynamicFeeType) throw new FormatError('the transaction is not of type 2')
  const fields = decodeList(raw.subarray(1))
  const [chainId, , , , , to, , data, accessList, parity, r, s] = fields
  if (fields.length !== fieldCount || to === undefined || data === undefined)
    throw new FormatError(`a transaction of type 2 has ${fieldCount} fields`)
  if (to.isList || to.bytes.length !== addressBytes)
    throw new FormatError('the transaction calls no address')
  if (data.isList || accessList?.isList !== true || accessList.bytes.length > 0)
    throw new FormatError('the transaction has an access list, or data of a wrong form')
  const signed = concat(Uint8Array.of(dynamicFeeType), encodeList(fields.slice(0, -3)))
  return {
    hash: `0x${encodeHex(hashKeccak(raw))}`,
    chainId: toNumber(chainId),
    sender: recoverSender(hashKeccak(signed), { parity, r, s }),
    to: `0x${encodeHex(to.bytes)}`,
    data: data.bytes,
  }
}

type Item = { readonly isList: boolean; readonly bytes: Uint8Array; readonly whole: Uint8Array }

function recoverSender(
  digest: Uint8Array,
  { parity, r, s }: Readonly<Record<'parity' | 'r' | 's', Item | undefined>>,
): string {
  const recovery = toNumber(parity)
  if (recovery > 1) throw new FormatError("the parity of the transaction's signature is 0 or 1")
  try {
    const compact = concat(toWord(r), toWord(s))
    const signature = secp256k1.Signature.fromBytes(compact, 'compact').addRecoveryBit(recovery)
    if (signature.hasHighS()) throw new FormatError("the transaction's signature has a high s")
    const point = signature.recoverPublicKey(digest).toBytes(false)
    return `0x${encodeHex(hashKeccak(point.subarray(1)).subarray(-addressBytes))}`
  } catch (error) {
    if (error instanceof FormatError) throw error
    throw new FormatError("the transaction's signature is of no key")
  }
}

/** Decodes the items of a list in the recursive-length prefix (Ethereum yellow paper, appendix B). */
function decodeList(bytes: Uint8Array): Item[] {
  const [list, ...more] = decodeItems(bytes)
  if (list?.isList !== true || more.length > 0)
    throw new FormatError('the transaction is not one list')
  return decodeItems(list.bytes)
}

function decodeItems(bytes: Uint8Array): Item[] {
  const items: Item[] = []
  for (let at = 0; at < bytes.length; ) {
    const { start, end, isList } = readPrefix(bytes, at)
    if (end > bytes.length) throw new FormatError('the transaction ends inside a field')
    const content = bytes.subarray(start, end)
    if (start === at + 1 && end === start + 1 && !isList && (content[0] ?? 0) < 0x80)
      throw new FormatError('the transaction has a byte in a longer form than the usual one')
    items.push({ isList, bytes: content, whole: bytes.subarray(at, end) })
    at = end
  }
  return items
}

function readPrefix(bytes: Uint8Array, at: number) {
  const first = bytes[at] ?? 0
  if (first < 0x80) return { start: at, end: at + 1, isList: false }
  const isList = first >= 0xc0
  const short = first - (isList ? 0xc0 : 0x80)
  if (short < 56) return { start: at + 1, end: at + 1 + short, isList }
  const lengthBytes = short - 55
  const start = at + 1 + lengthBytes
  const length = toNumber({ isList: false, bytes: bytes.subarray(at + 1, start) })
  if (lengthBytes > 3 || length < 56)
    throw new FormatError('a field of the transaction is too long')
  return { start, end: start + length, isList }
}

function encodeList(items: readonly Item[]): Uint8Array {
  const body = concat(...items.map(({ whole }) => whole))
  if (body.length < 56) return concat(Uint8Array.of(0xc0 + body.length), body)
  const digits: number[] = []
  for (let rest = body.length; rest > 0; rest = Math.floor(rest / 256)) digits.unshift(rest % 256)
  return concat(Uint8Array.of(0xf7 + digits.length, ...digits), body)
}

/** Reads a big-endian number of at most 2^48, which must not begin with a zero byte. */
function toNumber(item: Pick<Item, 'isList' | 'bytes'> | undefined): number {
  if (item === undefined || item.isList || item.bytes.length > 6 || item.bytes[0] === 0)
    throw new FormatError('the transaction has a number of a wrong form')
  return item.bytes.reduce((sum, byte) => sum * 256 + byte, 0)
}

function toWord(item: Item | undefined): Uint8Array {
  if (item === undefined || item.isList || item.bytes.length > 32)
    throw new FormatError("the transaction's signature has a wrong form")
  return concat(new Uint8Array(32 - item.bytes.length), item.bytes)
}
