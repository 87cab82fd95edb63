import { limits } from '@tollbase/contract/limits'
import type { Block } from '../../chain/parse-block.ts'
import type { Tenant } from '../../services/applications/tenants.ts'

/** The entries that one append call brought to a block. */
export type Group = { readonly block: Block; readonly sequence: number; readonly count: number }

type Options = {
  readonly blocksMax?: number
  readonly bytesMax?: number
  /** Aborted once nobody waits for the groups. */
  readonly signal?: AbortSignal
}

/**
 * Iterates over the groups of an application's log, from the newest one. It ends where so many blocks, or bytes of them,
 * were read: a log can have any number of blocks without a task, and each is read by itself. A block is held while its
 * groups are looked at.
 */
export async function* iterateNewestGroups(
  { chain }: Tenant,
  { blocksMax = limits.taskBlocksMax, bytesMax = limits.taskBlockBytesMax, signal }: Options = {},
): AsyncGenerator<Group, void> {
  const newest = chain.head().height
  let bytes = 0
  for (let height = newest; height > 0 && newest - height < blocksMax; height--) {
    const held = await chain.holdBlock(height, signal)
    if (held === undefined) return
    const { block, leave } = held
    try {
      for (const [at, sequence] of [...block.groupStarts.entries()].reverse()) {
        const count = (block.groupStarts[at + 1] ?? block.header.entryCount) - sequence
        yield { block, sequence, count }
      }
    } finally {
      leave()
    }
    bytes += block.bodyBytes
    if (bytes >= bytesMax) return
  }
}
