import { generateKeyPairSync } from 'node:crypto'
import { type LoopbackNode, startLoopbackNode } from '@tollbase/testing/celestia/node'
import { encodeChunkBlob, formatChunkNote } from '@tollbase/verify/celestia/chunk-blob'
import { deriveNamespace } from '@tollbase/verify/celestia/namespace'
import { encodeChunks } from '@tollbase/verify/publication'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { realWorld } from '../../base/world.ts'
import { openCelestiaNode } from '../../celestia/node.ts'
import { makeSigner } from '../../chain/signing.ts'
import { type ReadBlobsOptions, readBlobs } from './read-blobs.ts'

const origin = 'service.example/shop'
const namespace = deriveNamespace('shop')
const signer = makeSigner(generateKeyPairSync('ed25519').privateKey, origin)
let chain: LoopbackNode

beforeEach(async () => {
  chain = await startLoopbackNode({ blockMs: 3_600_000 })
})
afterEach(() => chain.stop())

/** Makes a blob of the log, with a chunk that its number tells from others. */
function makeBlob(number: number) {
  const [chunk] = encodeChunks(Uint8Array.of(number), 1_000)
  if (chunk === undefined) throw new Error('there is a chunk')
  const tree = { origin, size: number, root: new Uint8Array(32) }
  return { namespace, data: encodeChunkBlob(signer.signNote(formatChunkNote(tree, chunk)), chunk) }
}

async function readNumbers(options: Partial<ReadBlobsOptions> = {}): Promise<number[]> {
  const node = openCelestiaNode({ url: chain.url, world: realWorld })
  const numbers: number[] = []
  try {
    const onProgress = () => undefined
    const all = { vkey: signer.vkey, origin, onProgress, ...options }
    for await (const { bytes } of readBlobs(node, all)) numbers.push(bytes[0] ?? -1)
    return numbers
  } finally {
    node.close()
  }
}

const stranger = (bytes: number) => ({ namespace, data: new Uint8Array(bytes).fill(9) })
const listBytesMax = { ofEight: 20_000, ofOne: 200_000 }

test('a block that strangers have filled is read by itself, so that eight of them take no more memory than one', async () => {
  chain.mine(1, [makeBlob(1)])
  chain.mine(1, [makeBlob(2), stranger(40_000)])
  chain.mine(12, [makeBlob(3)])
  expect(await readNumbers({ listBytesMax })).toEqual([1, 2, 3])
  // 15 heights, and one of them twice.
  expect(chain.calls('blob.GetAll')).toBe(16)
})

test('a block with more than is read even by itself ends the search by its height', async () => {
  chain.mine(1, [makeBlob(1)])
  chain.mine(1, [makeBlob(2), stranger(250_000)])
  await expect(readNumbers({ listBytesMax })).rejects.toThrow(/block 3 .*200000 bytes/)
  expect(await readNumbers({ listBytesMax, toHeight: 2 })).toEqual([1])
})

test('a head that no chain has ends the search at once, unless the last block is named', async () => {
  chain.mine(3, [makeBlob(1)])
  chain.behave('vain')
  await expect(readNumbers()).rejects.toThrow(/which no chain has.*--to-block/)
  expect(await readNumbers({ toHeight: 4 })).toEqual([1])
}, 10_000)

test('an answer that is none of a node is not taken for a block without blobs', async () => {
  chain.mine(3, [makeBlob(1)])
  chain.behave('silent')
  await expect(readNumbers()).rejects.toThrow('without an answer to blob.GetAll')
})
