import { type Lumina, loadLumina } from '@tollbase/testing/celestia/lumina'
import { recordedHeaders, recordedSquare } from '@tollbase/testing/celestia/vectors'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { areBytesEqual, concat, decodeBase64, encodeHex } from '../bytes.ts'
import { computeReferenceRoot } from '../reference-tree.ts'
import { hashLeaf } from '../tree.ts'
import { computeCommitment, computeRoot, computeSubtreeWidth } from './commitment.ts'
import {
  deriveNamespace,
  namespaceBytes,
  parityNamespace,
  requireBlobNamespace,
} from './namespace.ts'
import { computeSubtreeRoot, hashShare } from './namespaced-tree.ts'
import { countShares, shareBytes, splitShares } from './shares.ts'

let lumina: Lumina
beforeAll(async () => {
  lumina = await loadLumina()
})

function computeByLumina(id: Uint8Array, data: Uint8Array): string {
  const namespace = lumina.Namespace.newV0(id)
  const blob = new lumina.Blob(namespace, data, lumina.AppVersion.latest())
  try {
    return encodeHex(blob.commitment.hash())
  } finally {
    blob.free()
  }
}

function makeNamespace(id: Uint8Array): Uint8Array {
  return concat(new Uint8Array(namespaceBytes - id.length), id)
}

function makeData(bytes: number, seed: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, at) => (at * 31 + seed * 17 + (at >> 8)) % 256)
}

/** Sizes at both sides of each share, of each width of subtrees, and far above. */
const sizes = [
  ...[1, 2, 477, 478, 479, 480, 959, 960, 961, 962, 1_441, 1_442, 1_443, 2_000],
  ...[3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129].flatMap((shares) => [
    478 + (shares - 1) * 482 - 1,
    478 + (shares - 1) * 482,
    478 + (shares - 1) * 482 + 1,
  ]),
  ...[100_000, 119_900, 131_072, 524_288, 1_000_000, 1_974_272],
]

describe('the commitment of a blob', () => {
  test.each(sizes)('is that of the official code for %i bytes', (bytes) => {
    const id = Uint8Array.from({ length: 10 }, (_, at) => (at * 7 + bytes) % 255 || 1)
    const data = makeData(bytes, bytes)
    expect(encodeHex(computeCommitment(makeNamespace(id), data))).toBe(computeByLumina(id, data))
  })

  test('is that of the official code for namespaces and data drawn at random', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 10, maxLength: 10 }),
        fc.uint8Array({ minLength: 1, maxLength: 512 }),
        fc.integer({ min: 1, max: 200 }),
        (id, piece, times) => {
          fc.pre(id.subarray(0, 9).some((byte) => byte > 0))
          const data = concat(...Array.from({ length: times }, () => piece))
          const own = encodeHex(computeCommitment(makeNamespace(id), data))
          expect(own).toBe(computeByLumina(id, data))
        },
      ),
      { numRuns: 300 },
    )
  })

  test('has subtree widths that grow with the blob', () => {
    expect([1, 2, 3, 4, 5, 64, 65, 1_085, 4_096, 4_097].map(computeSubtreeWidth)).toEqual([
      1, 1, 1, 1, 1, 1, 2, 32, 64, 128,
    ])
  })

  test('roots are those of RFC 6962', () => {
    for (let count = 1; count < 40; count++) {
      const values = Array.from({ length: count }, (_, at) => makeData(7, at))
      expect(computeRoot(values)).toEqual(computeReferenceRoot(values.map(hashLeaf)))
    }
  })
})

describe('shares', () => {
  test.each([1, 478, 479, 960, 961, 10_000])('of %i bytes hold them all, in order', (bytes) => {
    const namespace = deriveNamespace('shop')
    const shares = splitShares(namespace, makeData(bytes, 1))
    expect(shares).toHaveLength(countShares(bytes))
    expect(shares.every((share) => share.length === shareBytes)).toBe(true)
    const data = concat(...shares.map((share, at) => share.subarray(at === 0 ? 34 : 30)))
    expect(data.subarray(0, bytes)).toEqual(makeData(bytes, 1))
    expect(data.subarray(bytes).every((byte) => byte === 0)).toBe(true)
  })

  test('of nothing are refused, as the network does', () => {
    expect(() => splitShares(deriveNamespace('shop'), new Uint8Array(0))).toThrow('not empty')
  })
})

describe('a namespace', () => {
  test('of an application is the same for everybody, and one that the official code takes', () => {
    const namespace = deriveNamespace('shop')
    expect(encodeHex(namespace)).toBe(`${'00'.repeat(19)}b9b4c5d1a16bceee0a99`)
    expect(lumina.Namespace.fromRaw(namespace).asBytes()).toEqual(namespace)
    expect(deriveNamespace('shoq')).not.toEqual(namespace)
  })

  test.each([
    ['version 1', [1, ...Array(28).fill(5)]],
    ['an id that does not begin with zeros', [0, 1, ...Array(27).fill(5)]],
    ['255, the largest that the network keeps', [...Array(28).fill(0), 255]],
    ['0', Array(29).fill(0)],
    ['parity', [...parityNamespace]],
    ['one byte less', Array(28).fill(0)],
    ['one byte more', [...Array(28).fill(0), 1, 1]],
  ])('%s is of no blob', (_, bytes) => {
    expect(() => requireBlobNamespace(Uint8Array.from(bytes))).toThrow()
  })

  test('256 is the first one of blobs', () => {
    const first = Uint8Array.from([...Array(27).fill(0), 1, 0])
    expect(requireBlobNamespace(first)).toBe(first)
  })
})

describe('recorded squares', () => {
  test('have the row roots and the data root that we compute', () => {
    const shares = recordedSquare.data_square.map(decodeBase64)
    const width = Math.sqrt(shares.length)
    const isOriginal = (at: number) => at % width < width / 2 && at < shares.length / 2
    const leaves = shares.map((share, at) =>
      hashShare(isOriginal(at) ? share.subarray(0, namespaceBytes) : parityNamespace, share),
    )
    const { row_roots, column_roots } = recordedSquare.dah
    for (const [at, root] of row_roots.entries())
      expect(computeSubtreeRoot(leaves.slice(at * width, (at + 1) * width))).toEqual(
        decodeBase64(root),
      )
    for (const [at, root] of column_roots.entries())
      expect(computeSubtreeRoot(leaves.filter((_, of) => of % width === at))).toEqual(
        decodeBase64(root),
      )
  })

  test('of recorded headers have the data root that the header names', () => {
    for (const { header, dah } of recordedHeaders) {
      const root = computeRoot([...dah.row_roots, ...dah.column_roots].map(decodeBase64))
      expect(areBytesEqual(root, Buffer.from(header.data_hash, 'hex'))).toBe(true)
    }
  })
})
