import type { Entry } from '@tollbase/verify/entry'
import type { Log } from '../base/log.ts'
import type { World } from '../base/world.ts'
import type { Database, Queryable } from '../database/database.ts'
import type { Applier } from './applier.ts'
import type { ApplierLoop } from './applier-loop.ts'
import type { Beside } from './beside.ts'
import type { BlockStore } from './block-store.ts'
import type { ChainMemory } from './chain-memory.ts'
import type { Lease } from './lease.ts'
import type { LoadedChain } from './load-chain.ts'
import type { Signer } from './signing.ts'

export type ChainOptions = {
  readonly database: Database
  /** Has the chain's tables (see tables.ts). */
  readonly schema: string
  /** `<service>/<app>`, in every header and checkpoint. */
  readonly origin: string
  readonly signer: Signer
  readonly world: World
  /** Names this process among all that share the database. */
  readonly holder: string
  readonly applier: Applier
  /**
   * Reads the applier's tables into memory, in the same snapshot as the chain's end and its watermark. Runs once
   * the chain is ours and before anything is applied.
   */
  readonly prepare?: (snapshot: Queryable) => Promise<void>
  readonly log?: Log
  /** Throws where nothing new may be taken in (the disk is full). */
  readonly refuseFullDisk?: () => void
  /** Throws where the chain may not grow by these entries. */
  readonly refuseGrowth?: (
    entries: readonly Entry[],
    size: { readonly before: Contents; readonly after: Contents },
  ) => void
  /** Time that this process may be silent before another one takes the chain. */
  readonly leaseTtlMs?: number
  /** Called after each commit of a block. */
  readonly onBlock?: (block: { readonly entries: number }) => void
  /**
   * True where the tables may be committed before the disk has them. The log has them: after a crash of the
   * database the applier loop finds its watermark behind and stops, and reopening the chain applies again what was
   * lost.
   */
  readonly relaxedTables?: boolean
  /**
   * True where each entry's header gets a random `salt`. Leaf hashes are public, and an entry's content may be easy
   * to guess: without a salt everybody could check a guess.
   */
  readonly salted?: boolean
  /** The memory that all chains of a process share; without it the chain has its own. */
  readonly memory?: ChainMemory
}

export type ChainHead = {
  readonly height: number
  /** Leaves of the tree. */
  readonly size: number
  /** Base64. */
  readonly root: string
  /** Hash of the last block's header, in hex; zeros before the first block. */
  readonly hash: string
  /** Time of the last block, milliseconds since 1970. */
  readonly time: number
}

/** The contents of a chain, including entries on their way into it. */
export type Contents = {
  readonly entries: number
  /** Bytes of the entries as they are hashed, with 4 for each one's length. */
  readonly bytes: number
}

/** A chain's parts as `openChain` makes them. */
export type ChainParts = Omit<ChainOptions, 'log'> & {
  readonly log: Log
  readonly store: BlockStore
  readonly lease: Lease
  readonly applierLoop: ApplierLoop
  readonly bytes: number
} & Pick<LoadedChain, 'head' | 'tree'>

export type AppendOptions = {
  /**
   * True if the entries finish work that has begun (money has moved); `refuseFullDisk` is then not called.
   */
  readonly isOwed?: boolean
  /**
   * Runs in the same turn of the event loop in which the entries are queued; an error that it throws refuses them.
   */
  readonly check?: () => void
  /**
   * Rows that are written with their block; a BesideRefusedError says that these were refused, and with them the
   * entries.
   */
  readonly beside?: Beside
}
