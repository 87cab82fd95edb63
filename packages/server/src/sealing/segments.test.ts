import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  computeSealedSize,
  type FileSealing,
  locateSegments,
  openSegments,
  sealSegments,
  segmentBytes,
} from './segments.ts'

const sealing: FileSealing = { key: randomBytes(32), bound: '["a file"]' }
const sealedBytes = segmentBytes + 16

/** Sizes at which segments begin and end, and others. */
const sizes = fc.oneof(
  fc.integer({ min: 0, max: 3 * segmentBytes }),
  fc
    .tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: -1, max: 1 }))
    .map(([n, more]) => Math.max(0, n * segmentBytes + more)),
)

async function* chunk(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function collect(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all)
}

function seal(bytes: Buffer, size = 70_000): Promise<Buffer> {
  return collect(sealSegments(chunk(bytes, size), sealing))
}

function open(sealed: Buffer, size: number, by = sealing): Promise<Buffer> {
  return collect(openSegments(chunk(sealed, 100_000), by, { size, start: 0, end: size - 1 }))
}

describe('segments', () => {
  test('a file of any size, in chunks of any size, has the stated size, and comes back', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 200_000 }), async (size, chunkSize) => {
        const bytes = randomBytes(size)
        const sealed = await seal(bytes, Math.max(chunkSize, size / 50))
        expect(sealed.length).toBe(computeSealedSize(size))
        expect((await open(sealed, size)).equals(bytes)).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  test('any range is opened with its own segments alone', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, fc.nat(), fc.nat(), async (more, one, other) => {
        const size = more + 1
        const bytes = randomBytes(size)
        const sealed = await seal(bytes)
        const [start = 0, end = 0] = [one % size, other % size].sort((a, b) => a - b)
        const place = locateSegments({ size, start, end })
        expect(place.end - place.start + 1).toBeLessThan(end - start + 1 + 2 * sealedBytes)
        const source = chunk(sealed.subarray(place.start, place.end + 1), 50_000)
        const opened = await collect(openSegments(source, sealing, { size, start, end }))
        expect(opened.equals(bytes.subarray(start, end + 1))).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  test('segments that were changed, cut off, swapped, repeated or taken from another file are not opened', async () => {
    const size = 3 * segmentBytes
    const sealed = await seal(randomBytes(size))
    const other = await seal(randomBytes(size))
    const foreign = { ...sealing, key: randomBytes(32) }
    const part = (from: Buffer, at: number) =>
      from.subarray(at * sealedBytes, (at + 1) * sealedBytes)
    const [first, second, third] = [part(sealed, 0), part(sealed, 1), part(sealed, 2)]
    const changed = Buffer.from(sealed)
    changed.writeUInt8(changed.readUInt8(100_000) ^ 1, 100_000)
    const wrong: [Buffer, number][] = [
      [changed, size],
      [Buffer.concat([second, first, third]), size],
      [Buffer.concat([first, first, third]), size],
      [Buffer.concat([first, second]), size],
      // Cut where a segment ends, for a reader who believes that this is all.
      [Buffer.concat([first, second]), 2 * segmentBytes],
      [Buffer.concat([first, second, third, third]), 4 * segmentBytes],
      [sealed.subarray(0, -1), size - 1],
    ]
    for (const [bytes, length] of wrong) await expect(open(bytes, length)).rejects.toThrow()
    await expect(open(sealed, size, foreign)).rejects.toThrow()
    await expect(open(sealed, size, { ...sealing, bound: 'x' })).rejects.toThrow()
    expect(part(other, 0).equals(first)).toBe(false)
  })
})
