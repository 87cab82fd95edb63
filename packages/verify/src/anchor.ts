import { areBytesEqual, concat, decodeHex, encodeHex, encodeUtf8, FormatError } from './bytes.ts'
import type { Checkpoint } from './checkpoint.ts'
import { type EvmTransaction, hashKeccak, parseEvmTransaction } from './ethereum.ts'
import { isCount } from './fields.ts'
import { hashBytes } from './tree.ts'

/*
 * An anchor is a transaction on an EVM chain that calls `anchor(origin, size, root)` of contracts/Anchors.sol, which
 * emits `Anchored(sender, origin, size, root)`. The origin is Keccak-256 of a checkpoint's origin line.
 */

const selector = hashKeccak(encodeUtf8('anchor(bytes32,uint256,bytes32)')).subarray(0, 4)

/** The first topic of the event's logs, 0x and lower case. */
export const anchoredTopic: string = `0x${encodeHex(
  hashKeccak(encodeUtf8('Anchored(address,bytes32,uint256,bytes32)')),
)}`

const wordBytes = 32
/** Bytes of the longest transaction that can be an anchor. */
const rawBytesMax = 1024

/** Computes the origin as the contract has it, 0x and lower case. */
export function hashOrigin(origin: string): string {
  return `0x${encodeHex(hashKeccak(encodeUtf8(origin)))}`
}

/** Encodes the data of the call that anchors a checkpoint. */
export function encodeAnchorCall({ origin, size, root }: Checkpoint): Uint8Array {
  return concat(
    selector,
    decodeHex(hashOrigin(origin).slice(2), wordBytes),
    encodeTree({ size, root }),
  )
}

/** Encodes size and root as the data of the event's log has them. */
export function encodeTree({ size, root }: Pick<Checkpoint, 'size' | 'root'>): Uint8Array {
  return concat(decodeHex(size.toString(16).padStart(2 * wordBytes, '0'), wordBytes), root)
}

/** A transaction that anchors; `origin` is the hash, see `hashOrigin`. */
export type AnchorTransaction = Omit<EvmTransaction, 'data'> & Checkpoint

/** Parses the bytes (0x hex) of a transaction that anchors; throws a FormatError. */
export function parseAnchorTransaction(raw: string): AnchorTransaction {
  if (raw.length > 2 + 2 * rawBytesMax) throw new FormatError('the transaction is too long')
  if (!raw.startsWith('0x')) throw new FormatError('the transaction is hexadecimal text with 0x')
  const bytes = decodeHex(raw.slice(2), Math.floor((raw.length - 2) / 2))
  const { data, ...transaction } = parseEvmTransaction(bytes)
  const isAnchor = areBytesEqual(data.subarray(0, selector.length), selector)
  if (!isAnchor || data.length !== selector.length + 3 * wordBytes)
    throw new FormatError('the transaction is no call of `anchor(bytes32,uint256,bytes32)`')
  const words = data.subarray(selector.length)
  return {
    ...transaction,
    origin: `0x${encodeHex(words.subarray(0, wordBytes))}`,
    ...decodeTree(words.subarray(wordBytes)),
  }
}

/** Decodes size and root of the data of a log of the event; throws a FormatError. */
export function decodeTree(data: Uint8Array): Pick<Checkpoint, 'size' | 'root'> {
  const size = Number(`0x${encodeHex(data.subarray(0, wordBytes)) || '0'}`)
  const root = data.subarray(wordBytes)
  if (!isCount(size) || root.length !== hashBytes)
    throw new FormatError('an anchor has the size and the root of a tree')
  return { size, root }
}
