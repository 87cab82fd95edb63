import { FormatError } from '@tollbase/verify/bytes'
import { decodeChunkBlob } from '@tollbase/verify/celestia/chunk-blob'
import { deriveNamespace } from '@tollbase/verify/celestia/namespace'
import type { Chunk } from '@tollbase/verify/publication'
import { SetupError } from '../../base/setup-error.ts'
import type { CelestiaNode } from '../../celestia/node.ts'
import { NodeError } from '../../celestia/node-errors.ts'
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
}

const heightsAtOnce = 8

/**
 * Yields all chunks that the blocks of Celestia have of a log, in their order. Anybody can write into the namespace: what
 * the log's key has not signed is passed over. Throws where the node does not answer.
 */
export async function* readBlobs(
  node: CelestiaNode,
  { vkey, origin, fromHeight, toHeight, onProgress }: ReadBlobsOptions,
): AsyncGenerator<SentChunk, void, undefined> {
  const namespace = deriveNamespace(origin.slice(origin.lastIndexOf('/') + 1))
  const first = fromHeight ?? (await node.findTailHeight()) ?? 1
  const last = toHeight ?? (await node.readNetworkHead()).height
  for (let from = Math.max(1, first); from <= last; from += heightsAtOnce) {
    const count = Math.min(heightsAtOnce, last - from + 1)
    const heights = Array.from({ length: count }, (_, at) => from + at)
    const blobs = await Promise.all(heights.map((height) => listBlobs(node, height, namespace)))
    for (const { data } of blobs.flat())
      yield* findChunk(data, vkey).map((chunk) => ({ ...chunk, sender: origin }))
    onProgress(
      `looking through blocks up to ${from + count - 1}`,
      (from + count - first) / (last - first + 1),
    )
  }
}

async function listBlobs(node: CelestiaNode, height: number, namespace: Uint8Array) {
  try {
    return await node.listBlobs(height, namespace)
  } catch (error) {
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
