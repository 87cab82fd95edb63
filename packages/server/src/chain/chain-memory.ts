import { ByteLimit } from '../base/byte-limit.ts'
import type { World } from '../base/world.ts'
import { ProofCache } from './proof-cache.ts'

/** The memory that all chains of a process share. */
export type ChainMemory = {
  readonly proofs: ProofCache
  /** The bound on the blocks that requests hold. */
  readonly blocks: ByteLimit
}

const blockBytesMax = 128 * 1024 * 1024
const waitMs = 10_000

export function makeChainMemory(world: World): ChainMemory {
  const blocks = new ByteLimit({ world, bytesMax: blockBytesMax, waitMs })
  return { proofs: new ProofCache(), blocks }
}
