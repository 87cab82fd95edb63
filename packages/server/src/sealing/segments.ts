import { assert } from '../base/assert.ts'
import { nonceBytes, open, seal, tagBytes } from './aes-gcm.ts'

// The bytes of a sealed file, which are read and written as a stream: segments of one size, each sealed by itself
// (the construction STREAM). The nonce of a segment is its number and whether it is the last one, so that segments that
// were cut off, swapped or repeated do not open. That is safe because a key seals one file only.

/** Bytes of a segment before it is sealed; the last one has fewer. */
export const segmentBytes = 64 * 1024
/** Bytes that a sealed segment has beside. */
export const segmentOverhead = tagBytes
const sealedBytes = segmentBytes + segmentOverhead
const lastFlagAt = nonceBytes - 1
const numberAt = nonceBytes - 5
const segmentsMax = 2 ** 32

/** The key of one file, and what its segments are bound to. */
export type FileSealing = { readonly key: Buffer; readonly bound: string }

type SegmentPlace = { readonly number: number; readonly isLast: boolean }

/** A part of a file, from the first byte to the last (both included), of so many bytes in all. */
export type FileSpan = { readonly size: number; readonly start: number; readonly end: number }

/** Computes the bytes that a file of this size has when it is sealed. */
export function computeSealedSize(size: number): number {
  return size + countSegments(size) * segmentOverhead
}

/** Finds the bytes of the sealed file that a part of it needs. */
export function locateSegments({ size, start, end }: FileSpan): { start: number; end: number } {
  const [first, last] = [getSegment(start), getSegment(end)]
  const after = Math.min((last + 1) * sealedBytes, computeSealedSize(size))
  return { start: first * sealedBytes, end: after - 1 }
}

/** Seals a file's bytes as they come. */
export async function* sealSegments(
  source: AsyncIterable<Buffer>,
  sealing: FileSealing,
): AsyncGenerator<Buffer> {
  let number = 0
  let held: Buffer = Buffer.alloc(0)
  for await (const piece of cutPieces(source, segmentBytes)) {
    // Only what follows it shows that a segment is not the last one.
    if (held.length > 0) yield sealSegment(held, sealing, { number: number++, isLast: false })
    held = piece
  }
  yield sealSegment(held, sealing, { number, isLast: true })
}

/** Seals one segment of a file: all have `segmentBytes`, but for the last. */
export function sealSegment(piece: Buffer, sealing: FileSealing, place: SegmentPlace): Buffer {
  return seal(piece, nameSegment(sealing, place))
}

/** Opens a part of a file; `source` has the bytes that `locateSegments` names. Throws where any of them is another. */
export async function* openSegments(
  source: AsyncIterable<Buffer>,
  sealing: FileSealing,
  { size, start, end }: FileSpan,
): AsyncGenerator<Buffer> {
  const lastOfAll = countSegments(size) - 1
  const last = getSegment(end)
  let number = getSegment(start)
  for await (const piece of cutPieces(source, sealedBytes)) {
    const plain = open(piece, nameSegment(sealing, { number, isLast: number === lastOfAll }))
    const at = number * segmentBytes
    yield plain.subarray(Math.max(0, start - at), Math.min(plain.length, end + 1 - at))
    number += 1
  }
  if (number !== last + 1) throw new Error('a sealed file is too short')
}

/** A file of no bytes has a segment, too. */
function countSegments(size: number): number {
  return Math.max(1, Math.ceil(size / segmentBytes))
}

function getSegment(at: number): number {
  return Math.floor(Math.max(0, at) / segmentBytes)
}

function nameSegment({ key, bound }: FileSealing, { number, isLast }: SegmentPlace) {
  assert(number < segmentsMax, 'a file has at most 2^32 segments')
  const nonce = Buffer.alloc(nonceBytes)
  nonce.writeUInt32BE(number, numberAt)
  nonce[lastFlagAt] = isLast ? 1 : 0
  return { key, nonce, bound }
}

/** Cuts a stream into pieces of one size; the last one may be shorter, and none is empty. */
async function* cutPieces(source: AsyncIterable<Buffer>, bytes: number): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = []
  let count = 0
  for await (let chunk of source) {
    while (count + chunk.length >= bytes) {
      const needed = bytes - count
      yield waiting.length === 0
        ? chunk.subarray(0, needed)
        : Buffer.concat([...waiting, chunk.subarray(0, needed)])
      chunk = chunk.subarray(needed)
      waiting = []
      count = 0
    }
    if (chunk.length === 0) continue
    waiting.push(chunk)
    count += chunk.length
  }
  if (count > 0) yield Buffer.concat(waiting)
}
