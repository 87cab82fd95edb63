import { sha256 } from '@noble/hashes/sha2.js'
import {
  decodeBase64,
  decodeHex,
  encodeBase64,
  encodeHex,
  encodeUtf8,
  FormatError,
} from './bytes.ts'
import { verifySignature } from './checkpoint.ts'
import { type Fields, parseCount, requireText } from './fields.ts'
import { hashBytes } from './tree.ts'

export type BlockHeader = {
  /** `<service>/<app>`, as in the chain's checkpoints. */
  readonly origin: string
  /** From 1, without gaps. */
  readonly height: number
  /** Hash of the header below; 32 zero bytes at height 1. */
  readonly previousHash: Uint8Array
  /** Milliseconds since 1970, strictly rising along the chain. */
  readonly time: number
  /** Leaves of the tree with this block's entries. */
  readonly treeSize: number
  /** Root of the tree with this block's entries. */
  readonly root: Uint8Array
  /** SHA-256 of the body, see `encodeBlockBody`. */
  readonly bodyHash: Uint8Array
  /** SHA-256 of the group starts, see `encodeGroupStarts`. */
  readonly groupsHash: Uint8Array
  readonly entryCount: number
  /** Epoch of the lease under which the block was made; never falls. */
  readonly epoch: number
}

/** A signed block header as documents carry it: its text, and its signature in base64. */
export type ProofBlock = { readonly header: string; readonly signature: string }

const version = 'tollbase-block-v1'
/** Bytes of the length before each entry of a body. */
export const entryLengthBytes = 4
/** Stands for the length of an entry whose bytes were erased; none is that long. */
const erasedLength = 0xffffffff

/** The previous hash of the first block. */
export const noBlockHash: Uint8Array = new Uint8Array(hashBytes)

/**
 * Formats the header's text, one value a line; hashed and signed as UTF-8: version, origin, height, previous hash
 * (hex), time (ISO 8601, milliseconds, UTC), tree size, root (base64), body hash (hex), groups hash (hex), entry
 * count, epoch.
 */
export function formatBlockHeader(header: BlockHeader): string {
  const lines = [
    version,
    header.origin,
    header.height,
    encodeHex(header.previousHash),
    formatTime(header.time),
    header.treeSize,
    encodeBase64(header.root),
    encodeHex(header.bodyHash),
    encodeHex(header.groupsHash),
    header.entryCount,
    header.epoch,
  ]
  return `${lines.join('\n')}\n`
}

/** Throws a FormatError for every text that `formatBlockHeader` does not write. */
export function parseBlockHeader(text: string): BlockHeader {
  const lines = text.split('\n')
  if (lines[0] !== version) throw new FormatError(`a block header begins with ${version}`)
  const line = (index: number) => lines[index] ?? ''
  const header = {
    origin: line(1),
    height: parseCount(line(2), 'height'),
    previousHash: decodeHex(line(3), hashBytes),
    time: parseTime(line(4)),
    treeSize: parseCount(line(5), 'tree size'),
    root: decodeBase64(line(6)),
    bodyHash: decodeHex(line(7), hashBytes),
    groupsHash: decodeHex(line(8), hashBytes),
    entryCount: parseCount(line(9), 'entry count'),
    epoch: parseCount(line(10), 'epoch'),
  }
  const exact =
    header.root.length === hashBytes && header.height > 0 && formatBlockHeader(header) === text
  if (!exact) throw new FormatError('the block header is not in its standard form')
  return header
}

/** Parses the block of a document; throws a FormatError that names the member. */
export function parseProofBlock(fields: Fields): ProofBlock {
  return { header: requireText(fields, 'header'), signature: requireText(fields, 'signature') }
}

/** SHA-256 of the header's UTF-8 text. */
export function hashBlock(headerText: string): Uint8Array {
  return sha256(encodeUtf8(headerText))
}

/** True where the signature over the header is by this Ed25519 key. */
export function verifyBlockSignature(
  headerText: string,
  signature: Uint8Array,
  publicKey: Uint8Array,
): boolean {
  return verifySignature(signature, encodeUtf8(headerText), publicKey)
}

/**
 * Encodes the body: for each entry its length (32 bits, big endian) and its bytes; for one that was erased the length
 * 2^32 - 1 alone. The header's body hash is that of the body with all entries.
 */
export function encodeBlockBody(entries: readonly (Uint8Array | undefined)[]): Uint8Array {
  const body = new Uint8Array(countBodyBytes(entries))
  writeBlockBody(body, entries)
  return body
}

/** Counts the bytes of the body that these entries make. */
export function countBodyBytes(entries: readonly (Uint8Array | undefined)[]): number {
  return entries.reduce((sum, entry) => sum + entryLengthBytes + (entry?.length ?? 0), 0)
}

/** Writes the body at the beginning of the target, which has room for it. */
export function writeBlockBody(
  target: Uint8Array,
  entries: readonly (Uint8Array | undefined)[],
): void {
  const view = new DataView(target.buffer, target.byteOffset, target.byteLength)
  let at = 0
  for (const entry of entries) {
    view.setUint32(at, entry?.length ?? erasedLength)
    at += entryLengthBytes
    if (entry === undefined) continue
    target.set(entry, at)
    at += entry.length
  }
}

/** Decodes the entries of a body, as views of it, undefined where erased; throws a FormatError. */
export function decodeBlockBody(
  body: Uint8Array,
  entriesMax: number = Number.POSITIVE_INFINITY,
): (Uint8Array | undefined)[] {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  const entries: (Uint8Array | undefined)[] = []
  let at = 0
  while (at < body.length) {
    if (entries.length >= entriesMax)
      throw new FormatError(`the block's body has more than ${entriesMax} entries`)
    const start = at + entryLengthBytes
    const length = start > body.length ? Number.POSITIVE_INFINITY : view.getUint32(at)
    const end = length === erasedLength ? start : start + length
    if (end > body.length)
      throw new FormatError(`the block's body ends inside entry ${entries.length}`)
    entries.push(length === erasedLength ? undefined : body.subarray(start, end))
    at = end
  }
  return entries
}

/**
 * Encodes the sequences at which the groups of a block start (a group is what one call appended), each as 32 bits,
 * big endian; the header holds their hash, so the grouping is as fixed as the entries.
 */
export function encodeGroupStarts(groupStarts: readonly number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(groupStarts.length * entryLengthBytes))
  groupStarts.forEach((start, index) => {
    view.setUint32(index * entryLengthBytes, start)
  })
  return new Uint8Array(view.buffer)
}

function formatTime(time: number): string {
  return new Date(time).toISOString()
}

function parseTime(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw new FormatError("the block's time must be ISO 8601")
  return time
}
