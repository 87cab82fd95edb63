import { generateKeyPairSync } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import {
  encodeBlockBody,
  encodeGroupStarts,
  formatBlockHeader,
  hashBlock,
  noBlockHash,
} from '@tollbase/verify/block'
import { parseVerifierKey } from '@tollbase/verify/checkpoint'
import { decodeChunk, encodeBundle, encodeChunks } from '@tollbase/verify/publication'
import { expect, test } from 'vitest'
import { hashLeaf, MerkleTree, sha256 } from '../../chain/merkle.ts'
import { makeSigner } from '../../chain/signing.ts'
import { HeldBytes } from './held-bytes.ts'
import { joinBundles, type SentBundle } from './join-bundles.ts'
import { PublishedLog } from './published-log.ts'
import type { SentChunk } from './read-chunks.ts'
import { bundleBytesMax, iterateBlocks } from './recover-log.ts'

const { privateKey } = generateKeyPairSync('ed25519')
const origin = 'service.example/shop'
const key = parseVerifierKey(makeSigner(privateKey, origin).vkey)

/** Makes bundles of one block each, of the log with this name. */
function makeBundles(name: string, count: number, level = 6): SentBundle[] {
  const signer = makeSigner(privateKey, name)
  const tree = new MerkleTree()
  let previousHash = noBlockHash
  return Array.from({ length: count }, (_, at) => {
    const entries = [Buffer.from(`entry ${at}`)]
    tree.append(Buffer.concat(entries.map(hashLeaf)))
    const header = formatBlockHeader({
      ...{ origin: name, height: at + 1, previousHash, time: 1_000 + at, treeSize: tree.size },
      root: tree.root(),
      bodyHash: sha256(encodeBlockBody(entries)),
      groupsHash: sha256(encodeGroupStarts([0])),
      ...{ entryCount: 1, epoch: 1 },
    })
    previousHash = hashBlock(header)
    const signature = signer.sign(Buffer.from(header))
    const block = { header, signature, groupStarts: [0], entries, hidden: [] }
    const compressed = deflateRawSync(encodeBundle([block]), { level })
    return { hash: sha256(compressed).toString('hex'), compressed }
  })
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T, void, undefined> {
  yield* items
}

async function collect(
  bundles: readonly SentBundle[],
  held = new HeldBytes(),
  onOversized: () => void = () => undefined,
): Promise<number[]> {
  const heights: number[] = []
  for await (const { height } of iterateBlocks(
    { log: new PublishedLog(key), key, held, onOversized },
    each(bundles),
  ))
    heights.push(height)
  return heights
}

const count = (bundles: readonly SentBundle[]) =>
  bundles.reduce((sum, { compressed }) => sum + compressed.length, 0)

test('bundles may come in any order and as often as somebody likes: each block comes once, in the order of the log', async () => {
  const bundles = makeBundles(origin, 9)
  const heights = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  expect(await collect(bundles.toReversed())).toEqual(heights)
  expect(await collect([...bundles.slice(1), ...bundles, ...bundles.slice(1)])).toEqual(heights)
  // The same blocks in other bytes.
  const others = makeBundles(origin, 9, 0)
  expect(await collect([...others.slice(2), ...bundles])).toEqual(heights)
})

test('nothing is kept of blocks of another log of the same service, and a bundle that comes again is kept once', async () => {
  const others = makeBundles('service.example/other', 50)
  const bundles = makeBundles(origin, 4)
  const early = bundles.slice(1)
  const held = new HeldBytes(count(early))
  const sent = [...others.slice(5), ...early, ...early, ...early, ...bundles]
  expect(await collect(sent, held)).toEqual([1, 2, 3, 4])
})

test('bundles that wait are kept up to a limit and not one byte more', async () => {
  const bundles = makeBundles(origin, 4)
  const early = bundles.slice(1)
  expect(await collect([...early, ...bundles], new HeldBytes(count(early)))).toHaveLength(4)
  await expect(collect([...early, ...bundles], new HeldBytes(count(early) - 1))).rejects.toThrow(
    '--sender',
  )
})

test('a bundle of too many bytes is passed over and counted; one of strangers that is none, is not', async () => {
  const [first, ...others] = makeBundles(origin, 3)
  if (first === undefined) throw new Error('there is a bundle')
  const make = (bytes: Uint8Array) => ({ ...first, hash: `${bytes.length}`, compressed: bytes })
  const large = make(deflateRawSync(Buffer.alloc(bundleBytesMax + 1)))
  const none = make(crypto.getRandomValues(new Uint8Array(300)))
  let oversized = 0
  const onOversized = () => {
    oversized += 1
  }
  const sent = [large, first, none, ...others]
  expect(await collect(sent, new HeldBytes(), onOversized)).toEqual([1, 2, 3])
  expect(oversized).toBe(1)
})

test('chunks of bundles that are never whole are kept up to the same limit, and those of whole ones free their room', async () => {
  const compressed = crypto.getRandomValues(new Uint8Array(3_000))
  const chunks: SentChunk[] = encodeChunks(compressed, 1_100).map((bytes) => ({
    ...decodeChunk(bytes),
    sender: 'a',
  }))
  const [first] = chunks
  if (first === undefined) throw new Error('there is a chunk')
  const join = async (sent: readonly SentChunk[], max: number) => {
    let joined = 0
    for await (const one of joinBundles(each(sent), new HeldBytes(max)))
      joined += one.compressed.length
    return joined
  }
  expect(await join([...chunks, ...chunks, ...chunks], 3_000)).toBe(9_000)
  await expect(join(chunks, 2_999)).rejects.toThrow('--sender')
  const halves = ['a', 'b', 'c'].map((sender) => ({ ...first, sender }))
  expect(await join([...halves, first], 3 * first.bytes.length)).toBe(0)
  await expect(join(halves, 3 * first.bytes.length - 1)).rejects.toThrow('--sender')
})
