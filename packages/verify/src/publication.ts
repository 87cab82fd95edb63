import { sha256 } from '@noble/hashes/sha2.js'
import { countBodyBytes, decodeBlockBody, encodeGroupStarts, writeBlockBody } from './block.ts'
import { areBytesEqual, concat, concatAll, decodeUtf8, encodeUtf8, FormatError } from './bytes.ts'
import { hashBytes } from './tree.ts'

/*
 * Blocks of an application's log as they are published on another chain. Some blocks, one after the other, are a
 * bundle; its compressed bytes are cut into chunks, each of which one transaction holds:
 *
 *   tbp1 | part (16 bits) | parts (16 bits) | SHA-256 of the compressed bundle | bytes
 *
 * A bundle is, for each block: length (32 bits) and text of the header; signature (64 bytes); count of groups and the
 * sequence at which each starts (32 bits each); length (32 bits) and bytes of the body, as `encodeBlockBody` has it,
 * without the entries that are not published; and the leaf hash of each of these. All numbers are big endian.
 */

/** A block as it is published: entries that are not are undefined. */
export type PublishedBlock = {
  /** The text that is signed, see `formatBlockHeader`. */
  readonly header: string
  readonly signature: Uint8Array
  readonly groupStarts: readonly number[]
  readonly entries: readonly (Uint8Array | undefined)[]
  /** The leaf hashes of the entries that are not published, in their order. */
  readonly hidden: readonly Uint8Array[]
}

export type Chunk = {
  /** From 0. */
  readonly part: number
  readonly parts: number
  /** SHA-256 of the compressed bundle. */
  readonly bundle: Uint8Array
  readonly bytes: Uint8Array
}

const magic = encodeUtf8('tbp1')
const partsMax = 0xffff
const signatureBytes = 64
const numberBytes = 4

/** Bytes of a chunk beside those of the bundle. */
export const chunkOverheadBytes: number = magic.length + 2 * 2 + hashBytes

/** Cuts a compressed bundle, whose SHA-256 may be known, into chunks of at most so many bytes each. */
export function encodeChunks(
  compressed: Uint8Array,
  bytesMax: number,
  bundle: Uint8Array = sha256(compressed),
): Uint8Array[] {
  const width = bytesMax - chunkOverheadBytes
  const parts = Math.max(1, Math.ceil(compressed.length / width))
  if (width < 1 || parts > partsMax) throw new FormatError('the bundle has too many parts')
  return Array.from({ length: parts }, (_, part) => {
    const numbers = new Uint8Array(4)
    new DataView(numbers.buffer).setUint16(0, part)
    new DataView(numbers.buffer).setUint16(2, parts)
    return concat(magic, numbers, bundle, compressed.subarray(part * width, (part + 1) * width))
  })
}

/** Decodes a chunk; throws a FormatError where the bytes are none. */
export function decodeChunk(bytes: Uint8Array): Chunk {
  const isChunk =
    bytes.length >= chunkOverheadBytes && areBytesEqual(bytes.subarray(0, magic.length), magic)
  if (!isChunk) throw new FormatError('the bytes are no chunk of published blocks')
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const [part, parts] = [view.getUint16(magic.length), view.getUint16(magic.length + 2)]
  if (part >= parts) throw new FormatError('the part of a chunk is below their number')
  return {
    part,
    parts,
    bundle: bytes.subarray(chunkOverheadBytes - hashBytes, chunkOverheadBytes),
    bytes: bytes.subarray(chunkOverheadBytes),
  }
}

/** Joins the bytes of all chunks of a bundle, in the order of their parts; throws a FormatError where they are not it. */
export function joinChunks(chunks: readonly Chunk[]): Uint8Array {
  const compressed = concatAll(chunks.map(({ bytes }) => bytes))
  const [first] = chunks
  if (first === undefined || !areBytesEqual(sha256(compressed), first.bundle))
    throw new FormatError('the chunks are not those of one bundle')
  return compressed
}

/** Encodes blocks, each of which comes after the other: the bundle of some is what the bundles of each are, joined. */
export function encodeBundle(blocks: readonly PublishedBlock[]): Uint8Array {
  return concatAll(blocks.map(encodeBlock))
}

/** Copies each byte once: a block can have megabytes, and as many hidden hashes as entries. */
function encodeBlock({
  header,
  signature,
  groupStarts,
  entries,
  hidden,
}: PublishedBlock): Uint8Array {
  const text = encodeUtf8(header)
  const bodyBytes = countBodyBytes(entries)
  const groups = [encodeNumber(groupStarts.length), encodeGroupStarts(groupStarts)]
  const head = [encodeNumber(text.length), text, signature, ...groups, encodeNumber(bodyBytes)]
  const bodyAt = head.reduce((sum, { length }) => sum + length, 0)
  const bytes = new Uint8Array(bodyAt + bodyBytes + hidden.length * hashBytes)
  bytes.set(concatAll(head))
  writeBlockBody(bytes.subarray(bodyAt), entries)
  for (const [at, hash] of hidden.entries()) bytes.set(hash, bodyAt + bodyBytes + at * hashBytes)
  return bytes
}

/** Says how many entries a block has, by its header; throws a FormatError where the block is not wanted. */
export type CountEntries = (header: string, signature: Uint8Array) => number

/**
 * Decodes the blocks of a bundle, whose signatures and hashes are the caller's to check; throws a FormatError. Before
 * the entries of a block are looked at, `countEntries` is asked: a small bundle of a stranger can have millions.
 */
export function decodeBundle(
  bundle: Uint8Array,
  countEntries: CountEntries = () => Number.POSITIVE_INFINITY,
): PublishedBlock[] {
  const view = new DataView(bundle.buffer, bundle.byteOffset, bundle.byteLength)
  let at = 0
  const take = (count: number) => {
    const end = at + count
    if (end > bundle.length) throw new FormatError('the bundle ends inside a block')
    const taken = bundle.subarray(at, end)
    at = end
    return taken
  }
  const takeNumber = () => {
    take(numberBytes)
    return view.getUint32(at - numberBytes)
  }
  const blocks: PublishedBlock[] = []
  while (at < bundle.length) {
    const header = decodeUtf8(take(takeNumber()))
    const signature = take(signatureBytes)
    const entriesMax = countEntries(header, signature)
    const groups = takeNumber()
    if (groups > bundle.length) throw new FormatError('a block has more groups than bytes')
    const groupStarts = Array.from({ length: groups }, takeNumber)
    const entries = decodeBlockBody(take(takeNumber()), entriesMax)
    const hidden = entries.flatMap((entry) => (entry === undefined ? [take(hashBytes)] : []))
    blocks.push({ header, signature, groupStarts, entries, hidden })
  }
  return blocks
}

function encodeNumber(value: number): Uint8Array {
  const bytes = new Uint8Array(numberBytes)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}
