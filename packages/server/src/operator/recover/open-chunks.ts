import { computeAnchorAddress } from '../../anchors/anchor-contract.ts'
import { realWorld } from '../../base/world.ts'
import { openCelestiaNode } from '../../celestia/node.ts'
import { openRpc } from '../../x402/rpc.ts'
import type { Progress } from '../maintenance.ts'
import { readBlobs } from './read-blobs.ts'
import { readChunks, type SentChunk } from './read-chunks.ts'

/** The node of an EVM chain that blocks were published on. */
type EvmSource = {
  readonly rpc: string
  readonly sender?: string | undefined
  readonly contract?: string | undefined
  readonly fromBlock?: bigint | undefined
}

/** The node of Celestia that blocks were published on. */
type CelestiaSource = {
  readonly celestia: string
  readonly token?: string | undefined
  /** The first and the last height to look at: those of the node's oldest and newest blocks where not given. */
  readonly fromBlock?: bigint | undefined
  readonly toBlock?: bigint | undefined
}

export type ChunkSource = EvmSource | CelestiaSource

/** Opens the chunks that another chain has of a log, in that chain's order. */
export function openChunks(
  source: ChunkSource,
  {
    vkey,
    origin,
    onProgress,
  }: { readonly vkey: string; readonly origin: string; readonly onProgress: Progress },
): { readonly chunks: AsyncIterable<SentChunk>; readonly close: () => void } {
  if ('celestia' in source) {
    const { celestia: url, token, fromBlock, toBlock } = source
    const node = openCelestiaNode({ url, token, world: realWorld })
    const chunks = readBlobs(node, {
      ...{ vkey, origin, onProgress },
      ...(fromBlock !== undefined && { fromHeight: Number(fromBlock) }),
      ...(toBlock !== undefined && { toHeight: Number(toBlock) }),
    })
    return { chunks, close: () => node.close() }
  }
  const { rpc: url, contract, sender, fromBlock = 0n } = source
  const rpc = openRpc({ url, world: realWorld })
  const chunks = readChunks(rpc, {
    contract: contract?.toLowerCase() ?? computeAnchorAddress(),
    sender: sender?.toLowerCase(),
    ...{ origin, fromBlock, onProgress },
  })
  return { chunks, close: () => rpc.close() }
}
