import { limits } from '@tollbase/contract/limits'
import type { Block } from '../../chain/parse-block.ts'
import type { Tenant } from '../../services/applications/tenants.ts'

/** The entries that one append call brought to a block. */
export type Group = { readonly block: Block; readonly sequence: number; readonly count: number }

type Bounds = { readonly blocksMax: number; readonly bytesMax: number }

const boundsDefault: Bounds = {
  blocksMax: limits.taskBlocksMax,
  bytesMax: limits.taskBlockBytesMax,
}

/**
 * Iterates over the groups of an application's log, from the newest one. It ends where so many blocks, or bytes of them,
 * were read: a log can have any number of blocks without a task, and each is read by itself.
 */
export async function* iterateNewestGroups(
  { chain }: Tenant,
  { blocksMax, bytesMax }: Bounds = boundsDefault,
): AsyncGenerator<Group, void> {
  const newest = chain.head().height
  let bytes = 0
  for (let height = newest; height > 0 && newest - height < blocksMax; height--) {
    const block = await chain.readBlock(height)
    if (block === undefined) return
    for (const [at, sequence] of [...block.groupStarts.entries()].reverse()) {
      const count = (block.groupStarts[at + 1] ?? block.header.entryCount) - sequence
      yield { block, sequence, count }
    }
    bytes += block.bodyBytes
    if (bytes >= bytesMax) return
  }
}
