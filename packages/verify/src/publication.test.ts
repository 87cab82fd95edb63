import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { FormatError } from './bytes.ts'
import {
  chunkOverheadBytes,
  decodeBundle,
  decodeChunk,
  encodeBundle,
  encodeChunks,
  joinChunks,
  type PublishedBlock,
} from './publication.ts'

const random = (count: number) => new Uint8Array(randomBytes(count))

/** Draws blocks with entries of all sizes, some of which are not published. */
function drawBlocks(count: number): PublishedBlock[] {
  return Array.from({ length: count }, (_, height) => {
    const entries = Array.from({ length: height % 5 }, (_, at) =>
      (height + at) % 3 === 0 ? undefined : random((at * 97) % 400),
    )
    return {
      header: `header of ${height} ü\n`,
      signature: random(64),
      groupStarts: entries.map((_, at) => at),
      entries,
      hidden: entries.flatMap((entry) => (entry === undefined ? [random(32)] : [])),
    }
  })
}

describe('published blocks', () => {
  test('are the same after they were a bundle, cut into chunks of any size, and joined', () => {
    for (let count = 0; count < 30; count++) {
      const blocks = drawBlocks(count)
      const bundle = encodeBundle(blocks)
      for (const bytesMax of [chunkOverheadBytes + 1 + count, 100 + count * 37, 100_000]) {
        const chunks = encodeChunks(bundle, bytesMax)
        for (const chunk of chunks) expect(chunk.length).toBeLessThanOrEqual(bytesMax)
        const decoded = chunks.map(decodeChunk)
        expect(decoded.map(({ part }) => part)).toEqual(decoded.map((_, at) => at))
        expect(decoded[0]?.bundle).toEqual(
          new Uint8Array(createHash('sha256').update(bundle).digest()),
        )
        expect(decodeBundle(joinChunks(decoded))).toEqual(blocks)
      }
    }
  })

  test('may have as many hidden entries as they like: each is a hash, and no call has one argument for each', () => {
    const hash = random(32)
    const count = 200_000
    const blocks = drawBlocks(1).map((block) => ({
      ...block,
      entries: Array.from({ length: count }, () => undefined),
      hidden: Array.from({ length: count }, () => hash),
    }))
    const [decoded] = decodeBundle(encodeBundle(blocks))
    expect(decoded?.hidden).toHaveLength(count)
    expect(decoded?.hidden.at(-1)).toEqual(hash)
  })

  test('no change of a byte of a chunk, no part that is missing, and no other order passes as the bundle', () => {
    const chunks = encodeChunks(encodeBundle(drawBlocks(9)), 300)
    expect(chunks.length).toBeGreaterThan(3)
    const first = chunks[0] ?? new Uint8Array()
    for (let at = 0; at < first.length; at++) {
      const changed = first.slice()
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => {
        const [head, ...rest] = [changed, ...chunks.slice(1)].map(decodeChunk)
        if (head?.part !== 0 || head.parts !== chunks.length) throw new FormatError('another part')
        return joinChunks([head, ...rest])
      }).toThrow(FormatError)
    }
    const decoded = chunks.map(decodeChunk)
    expect(() => joinChunks(decoded.slice(1))).toThrow(FormatError)
    expect(() => joinChunks([...decoded].reverse())).toThrow(FormatError)
    expect(() => joinChunks([])).toThrow(FormatError)
  })

  test('a bundle that ends anywhere but behind a block, and counts that no bytes follow, are refused in little memory', () => {
    const blocks = drawBlocks(4)
    const bundle = encodeBundle(blocks)
    const ends = new Set(blocks.map((_, at) => encodeBundle(blocks.slice(0, at)).length))
    for (let end = 1; end < bundle.length; end++)
      if (!ends.has(end)) expect(() => decodeBundle(bundle.subarray(0, end))).toThrow(FormatError)
    const huge = Uint8Array.of(0, 0, 0, 1, 65, ...new Uint8Array(64), 0xff, 0xff, 0xff, 0xff, 0, 0)
    expect(() => decodeBundle(huge)).toThrow(FormatError)
    expect(() => decodeChunk(new Uint8Array(chunkOverheadBytes - 1))).toThrow(FormatError)
  })

  test('a block with more entries than its header says is refused, and one that is not wanted before its entries are read', () => {
    const [block] = drawBlocks(5).slice(-1)
    if (block === undefined) throw new Error('a block')
    const bundle = encodeBundle([block])
    const count = block.entries.length
    expect(decodeBundle(bundle, () => count)).toEqual([block])
    expect(() => decodeBundle(bundle, () => count - 1)).toThrow(FormatError)
    const asked: string[] = []
    const refuse = (header: string): number => {
      asked.push(header)
      throw new FormatError('not wanted')
    }
    expect(() => decodeBundle(bundle.subarray(0, 100), refuse)).toThrow('not wanted')
    expect(asked).toEqual([block.header])
  })
})
