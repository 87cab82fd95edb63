import { FormatError } from '@tollbase/verify/bytes'
import { decodeChunkBlob } from '@tollbase/verify/celestia/chunk-blob'
import { deriveNamespace } from '@tollbase/verify/celestia/namespace'
import type { Chunk } from '@tollbase/verify/publication'
import { SetupError } from '../../base/setup-error.ts'
import type { CelestiaNode, ListLimits, PlacedBlob } from '../../celestia/node.ts'
import { NodeError } from '../../celestia/node-errors.ts'
import { AnswerTooLarge } from '../../x402/http-json.ts'
import { refuseImpossibleHead } from '../impossible-head.ts'
import type { Progress } from '../maintenance.ts'
import type { SentChunk } from './read-chunks.ts'

export type ReadBlobsOptions = {
  readonly vkey: string
  /** The name of the application's log: `<service>/<app>`. */
  readonly origin: string
  /** That of the node's oldest block where not given. */
  readonly fromHeight?: number
  /** That of the node's newest block where not given. */
  readonly toHeight?: number
  readonly onProgress: Progress
  readonly listBytesMax?: ListBytesMax
}

/** Bytes of a block's list at most: of one that is read beside seven others, and of one that is read by itself. */
type ListBytesMax = { readonly ofEight: number; readonly ofOne: number }

const heightsAtOnce = 8
/** The largest block there can be, full of the smallest blobs, has some 220 MB of JSON. */
const listBytesMaxDefault: ListBytesMax = { ofEight: 8 * 1024 * 1024, ofOne: 256 * 1024 * 1024 }
/** Nodes take as long to write an answer. */
const largeDeadlineMs = 5 * 60_000
/** No chain of Celestia has as many blocks: six a second make them in five years. */
const heightMax = 2n ** 30n

/**
 * Yields all chunks that the blocks of Celestia have of a log, in their order. Anybody can write into the namespace: what
 * the log's key has not signed is passed over. Throws where the node does not answer.
 */
export async function* readBlobs(
  node: CelestiaNode,
  options: ReadBlobsOptions,
): AsyncGenerator<SentChunk, void, undefined> {
  const { vkey, origin, onProgress } = options
  const first = options.fromHeight ?? (await node.findTailHeight()) ?? 1
  const last = options.toHeight ?? (await readLast(node))
  for (let from = Math.max(1, first); from <= last; from += heightsAtOnce) {
    const count = Math.min(heightsAtOnce, last - from + 1)
    const heights = Array.from({ length: count }, (_, at) => from + at)
    for await (const { data } of readBlobsAt(node, heights, options))
      yield* findChunk(data, vkey).map((chunk) => ({ ...chunk, sender: origin }))
    onProgress(
      `looking through blocks up to ${from + count - 1}`,
      (from + count - first) / (last - first + 1),
    )
  }
}

async function readLast(node: CelestiaNode): Promise<number> {
  const { height } = await node.readNetworkHead()
  refuseImpossibleHead(BigInt(height), { max: heightMax, way: 'name the last one by --to-block' })
  return height
}

/** Yields the blobs of some blocks in their order. One that strangers have filled is read when the others are done. */
async function* readBlobsAt(
  node: CelestiaNode,
  heights: readonly number[],
  { origin, listBytesMax: { ofEight, ofOne } = listBytesMaxDefault }: ReadBlobsOptions,
): AsyncGenerator<PlacedBlob, void, undefined> {
  const namespace = deriveNamespace(origin.slice(origin.lastIndexOf('/') + 1))
  const lists = await Promise.all(
    heights.map((height) => findBlobs(node, { height, namespace }, { responseBytesMax: ofEight })),
  )
  for (const [at, height] of heights.entries()) {
    const limits = { responseBytesMax: ofOne, deadlineMs: largeDeadlineMs }
    const blobs = lists[at] ?? (await findBlobs(node, { height, namespace }, limits))
    if (blobs === undefined)
      throw new SetupError(
        `the blobs of block ${height} for this log have more than the ${ofOne} bytes that are read`,
      )
    yield* blobs
  }
}

/** Lists the blobs of a block; undefined where the list has more bytes than are read. */
async function findBlobs(
  node: CelestiaNode,
  { height, namespace }: { readonly height: number; readonly namespace: Uint8Array },
  limits: ListLimits,
): Promise<readonly PlacedBlob[] | undefined> {
  try {
    return await node.listBlobs(height, namespace, limits)
  } catch (error) {
    if (error instanceof AnswerTooLarge) return undefined
    if (error instanceof NodeError && error.kind === 'pruned')
      throw new SetupError(
        `the node has no blocks of height ${height} any more: ask an archival one`,
      )
    throw error
  }
}

function findChunk(data: Uint8Array, vkey: string): Chunk[] {
  try {
    return [decodeChunkBlob(data, vkey)]
  } catch (error) {
    if (error instanceof FormatError) return []
    throw error
  }
}
