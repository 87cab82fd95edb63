import { noLog } from '../base/log.ts'
import { ApplierLoop, TablesMovedError } from './applier-loop.ts'
import { BlockStore } from './block-store.ts'
import { Chain } from './chain.ts'
import type { ChainOptions } from './chain-options.ts'
import { acquireLease, leaseTtlMsDefault } from './lease.ts'
import { loadChain } from './load-chain.ts'

/**
 * Opens a chain for writing: takes its lease (UNAVAILABLE names another holder), checks its last block and tree,
 * and applies the entries that were committed and not applied yet. TablesMovedError where the earlier holder, still at
 * work, applied some of them first: what `prepare` has read is old then, and the chain is to be opened anew.
 */
export async function openChain(options: ChainOptions): Promise<Chain> {
  const { database, schema: chain, holder, world, applier } = options
  const log = options.log ?? noLog
  const ttlMs = options.leaseTtlMs ?? leaseTtlMsDefault
  const lease = await acquireLease({ database, chain, holder, world, log, ttlMs })
  try {
    const store = new BlockStore(database, chain)
    const { head, tree, watermark } = await loadChain(options)
    const relaxed = options.relaxedTables === true
    const applierLoop = new ApplierLoop({
      relaxed,
      database,
      store,
      applier,
      world,
      log,
      chain,
      watermark,
    })
    const { height, bytes } = lease.sizeBefore
    const more = await store.bodyBytes(height, head.height)
    const parts = { ...options, log, store, lease, applierLoop, head, tree, bytes: bytes + more }
    const opened = new Chain(parts)
    applierLoop.applyUpTo(head.height)
    // A chain whose applier fails is opened nevertheless: it can be read and proven, and shows the failure.
    await applierLoop.whenApplied(head.height).catch(() => undefined)
    const cause = applierLoop.failure?.cause
    if (cause instanceof TablesMovedError) throw cause
    return opened
  } catch (error) {
    // The first error is the one that explains; a lease that is not released expires by itself.
    await lease.release().catch(() => undefined)
    throw error
  }
}
