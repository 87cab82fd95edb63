import { limits } from '@tollbase/contract/limits'
import { encodeGroupStarts, formatBlockHeader } from '@tollbase/verify/block'
import type { Entry } from '@tollbase/verify/entry'
import { awaitTurn } from '../base/await-turn.ts'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import {
  CommitUnknownError,
  findStorageProblem,
  isRefusedStatement,
  isTransient,
  isUniqueViolation,
} from '../database/errors.ts'
import { type Beside, BesideRefusedError } from './beside.ts'
import type { BlockRow, BlockStore } from './block-store.ts'
import { isStorageFault, type StorageRefusal, toCommitFault } from './chain-faults.ts'
import { getCurrentNote } from './commit-notes.ts'
import type { Group } from './entries.ts'
import { type CompletedTile, concatHashes, hashBytes, type MerkleTree, sha256 } from './merkle.ts'
import type { Signer } from './signing.ts'

/** The last committed block, or its stand-in before the first one. */
export type Head = {
  readonly height: number
  /** SHA-256 of its header. */
  readonly hash: Buffer
  /** Milliseconds since 1970. */
  readonly time: number
  /** Leaves of the tree. */
  readonly size: number
  readonly root: Buffer
}

/** The position of an appended group. */
export type Appended = {
  readonly height: number
  /** Sequence of the group's first entry, within the block. */
  readonly sequence: number
  readonly count: number
  /** Time of the block, milliseconds since 1970. */
  readonly time: number
  /** Leaf index of the group's first entry. */
  readonly leafIndex: number
  /** 32 bytes for each entry of the group. */
  readonly leafHashes: Buffer
}

export type BuiltBlock = BlockRow & {
  readonly head: Head
  readonly entries: readonly Entry[]
  readonly tiles: readonly CompletedTile[]
  /** The ids of the named requests that its entries belong to; entries of other work have none. */
  readonly notes: readonly string[]
  readonly beside: Beside | undefined
}

export type CommitterOptions = {
  readonly store: BlockStore
  readonly signer: Signer
  readonly world: World
  readonly origin: string
  readonly epoch: number
  readonly head: Head
  /** Bytes of the bodies of all blocks up to `head`. */
  readonly bytes: number
  /** The tree at the size of `head`; the committer owns it from now on. */
  readonly tree: MerkleTree
  /** Throws where the chain is not ours any more. */
  readonly ensureLease: () => Promise<void>
  /** Called with the tiles that a block makes full, before its commit begins. */
  readonly onTiles: (tiles: readonly CompletedTile[]) => void
  /** The block that made these tiles full was not committed. */
  readonly onTilesDropped: (tiles: readonly CompletedTile[]) => void
  readonly onCommitted: (block: BuiltBlock) => void
  readonly onFailure: (error: unknown) => void
}

type Pending = {
  readonly group: Group
  readonly beside: Beside | undefined
  readonly note: string | undefined
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: unknown) => void
}

/** Attempts for one block; with the pauses between them about 20 seconds. */
const attemptsMax = 14
const pauseMinMs = 20
const pauseMaxMs = 2_000
/** Entries up to which groups share a block; with more, the sender of the first would wait for the last. */
const sharedEntriesMax = 1_000
/** Leaves that are put into the tree without a pause. */
const leavesAtOnce = 256

/**
 * Group commit: one block is on its way at a time, and entries that arrive meanwhile go into the next block. A built
 * block is committed exactly as it is. If the storage refuses it and certainly does not have it, the whole block is
 * refused. In any other case the committer fails for good, and reopening the chain finds out which blocks the database
 * has.
 */
export class Committer {
  readonly #options: CommitterOptions
  readonly #tree: MerkleTree
  #head: Head
  #bytes: number
  #queue: Pending[] = []
  #queuedEntries = 0
  #queuedBytes = 0
  /** The promise of the newest group; groups settle in their order. */
  #last: Promise<unknown> = Promise.resolve()
  #working: Promise<void> | undefined
  #failure: Fault | undefined
  #storageRefusal: StorageRefusal | undefined

  constructor(options: CommitterOptions) {
    this.#options = options
    this.#tree = options.tree
    this.#head = options.head
    this.#bytes = options.bytes
  }

  get head(): Head {
    return this.#head
  }

  /** The storage's refusal of a block, unless it has taken one since. */
  get storageRefusal(): StorageRefusal | undefined {
    return this.#storageRefusal
  }

  /** Bytes of the bodies of all blocks up to the head. */
  get bytes(): number {
    return this.#bytes
  }

  /** Entries that are waiting or on their way. */
  get queuedEntries(): number {
    return this.#queuedEntries
  }

  get queuedBytes(): number {
    return this.#queuedBytes
  }

  /** Resolves once the group's block is durable, with what is written beside it; a BesideRefusedError where that is refused. */
  enqueue(group: Group, beside?: Beside): Promise<Appended> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const note = getCurrentNote()
    this.#queuedEntries += group.entries.length
    this.#queuedBytes += group.body.length
    const appended = new Promise<Appended>((resolve, reject) =>
      this.#queue.push({ group, beside, note, resolve, reject }),
    )
    this.#last = appended
    this.#working ??= this.#work()
    return appended
  }

  /** Notes that bytes of the blocks up to the head were erased. */
  noteErased(bytes: number): void {
    this.#bytes -= bytes
  }

  /** Refuses everything that waits and everything that comes. */
  fail(failure: Fault): void {
    this.#failure ??= failure
    const waiting = this.#queue
    this.#queue = []
    this.#settle(waiting, (pending) => pending.reject(failure))
  }

  /** Resolves to the height at which everything enqueued before this call is committed or refused. */
  async flushed(): Promise<number> {
    await this.#last.catch(() => undefined)
    return this.#head.height
  }

  /** Resolves when nothing is waiting. */
  async drained(): Promise<void> {
    while (this.#working !== undefined) await this.#working
  }

  async #work(): Promise<void> {
    // Appends of the same turn of the event loop share the first block.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const batch = this.#takeBatch()
      const before = this.#tree.mark()
      let block: BuiltBlock | undefined
      try {
        block = await this.#build(batch)
        await this.#commit(block)
        this.#committed(block, batch)
      } catch (error) {
        if (block !== undefined && this.#isRefused(batch, error)) {
          this.#tree.rollBack(before)
          this.#options.onTilesDropped(block.tiles)
        } else {
          const failure = toCommitFault(error)
          this.#settle(batch, (pending) => pending.reject(failure))
          this.fail(failure)
          this.#options.onFailure(error)
        }
      }
    }
    this.#working = undefined
  }

  /** Settles who is refused where the block surely is not there: all, or those alone that wanted more than a block. */
  #isRefused(batch: readonly Pending[], error: unknown): boolean {
    if (error instanceof BesideRefusedError) {
      const isOfBeside = (one: Pending) => one.beside !== undefined
      this.#settle(batch.filter(isOfBeside), (pending) => pending.reject(error))
      this.#queue.unshift(...batch.filter((one) => !isOfBeside(one)))
      return true
    }
    const failure = toCommitFault(error)
    if (!isStorageFault(failure)) return false
    this.#settle(batch, (pending) => pending.reject(failure))
    this.#storageRefusal = { code: failure.code, atMs: this.#options.world.now() }
    return true
  }

  /** Takes as many whole groups as fit into one block; one of them at most has something to be written beside. */
  #takeBatch(): Pending[] {
    let entries = 0
    let bytes = 0
    let count = 0
    let besides = 0
    for (const { group, beside } of this.#queue) {
      entries += group.entries.length
      bytes += group.body.length
      if (beside !== undefined) besides += 1
      const isMore = entries > sharedEntriesMax || bytes > limits.blockBytesMax || besides > 1
      if (count > 0 && isMore) break
      count += 1
    }
    return this.#queue.splice(0, count)
  }

  async #build(batch: readonly Pending[]): Promise<BuiltBlock> {
    const { world, signer, origin, epoch } = this.#options
    const groups = batch.map(({ group }) => group)
    const body = concatHashes(groups.map((group) => group.body))
    const leafHashes = concatHashes(groups.map((group) => group.leafHashes))
    const entries =
      groups.length === 1 ? (groups[0]?.entries ?? []) : groups.flatMap((group) => group.entries)
    const groupStarts = listGroupStarts(groups)
    const tiles = await this.#grow(leafHashes)
    const previous = this.#head
    const height = previous.height + 1
    const time = Math.max(world.now(), previous.time + 1)
    const root = this.#tree.root()
    const size = this.#tree.size
    const text = formatBlockHeader({
      origin,
      height,
      previousHash: previous.hash,
      time,
      treeSize: size,
      root,
      bodyHash: sha256(body),
      groupsHash: sha256(encodeGroupStarts(groupStarts)),
      entryCount: entries.length,
      epoch,
    })
    const header = Buffer.from(text)
    const head = { height, hash: sha256(header), time, size, root }
    const row = {
      height,
      header,
      signature: signer.sign(header),
      firstLeaf: previous.size,
      entryCount: entries.length,
    }
    const notes = batch.flatMap(({ note }) => (note === undefined ? [] : [note]))
    const beside = batch.find((one) => one.beside !== undefined)?.beside
    return { ...row, groupStarts, body, leafHashes, head, entries, tiles, notes, beside }
  }

  /**
   * Appends the leaf hashes to the tree and returns the tiles that became full. It yields between steps; a reader finds
   * each tile at every moment.
   */
  async #grow(leafHashes: Buffer): Promise<readonly CompletedTile[]> {
    const tiles: CompletedTile[] = []
    const step = leavesAtOnce * hashBytes
    for (let from = 0; from < leafHashes.length; from += step) {
      if (from > 0) await awaitTurn()
      this.#tree.append(leafHashes.subarray(from, from + step))
      const full = this.#tree.takeFullTiles()
      if (full.length > 0) this.#options.onTiles(full)
      tiles.push(...full)
    }
    return tiles
  }

  /**
   * Inserts the block until it is there. After a lost connection its fate is unknown, so the same bytes are sent
   * again: the primary key refuses them where they are there already, or where another producer was first.
   */
  async #commit(block: BuiltBlock): Promise<void> {
    const { world, ensureLease } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        await ensureLease()
        world.failpoint?.('block.beforeCommit')
        await this.#insert(block)
        world.failpoint?.('block.afterCommit')
        // A new holder of the chain may have read it before this commit and would not know of the block.
        await ensureLease()
        return
      } catch (error) {
        if (findStorageProblem(error) !== undefined) return await this.#judgeRefusal(block, error)
        const retriable = isTransient(error) || error instanceof CommitUnknownError
        if (!retriable || attempt === attemptsMax) throw error
        await world.sleep(Math.min(pauseMinMs * 2 ** (attempt - 1), pauseMaxMs))
      }
    }
  }

  /** A connection lost while judging the conflict leads to another attempt too. */
  async #insert(block: BuiltBlock): Promise<void> {
    try {
      await this.#options.store.insert(block, block)
    } catch (error) {
      if (!isUniqueViolation(error) && !isOfBeside(block, error)) throw error
      await this.#judgeConflict(block, error)
    }
  }

  async #judgeConflict(block: BuiltBlock, error: unknown): Promise<void> {
    const stored = await this.#options.store.block(block.height)
    if (stored === undefined)
      throw isOfBeside(block, error)
        ? new BesideRefusedError(String(error), { cause: error })
        : error
    if (stored.header.equals(block.header) && stored.signature.equals(block.signature)) return
    throw new Fault('UNAVAILABLE', {
      message: 'Another server has taken over this application.',
      internal: `block ${block.height} was produced by another holder of the chain`,
      retryAfterSeconds: 1,
      cause: error,
    })
  }

  /** An earlier attempt, whose connection was lost, may have been the one that counts. */
  async #judgeRefusal(block: BuiltBlock, error: unknown): Promise<void> {
    if ((await this.#options.store.block(block.height)) === undefined) throw error
    await this.#judgeConflict(block, error)
  }

  #committed(block: BuiltBlock, batch: readonly Pending[]): void {
    this.#head = block.head
    this.#bytes += block.body.length
    this.#storageRefusal = undefined
    this.#options.onCommitted(block)
    const { height, firstLeaf } = block
    let sequence = 0
    this.#settle(batch, ({ group, resolve }) => {
      const count = group.entries.length
      const leafIndex = firstLeaf + sequence
      const { leafHashes } = group
      resolve({ height, sequence, count, time: block.head.time, leafIndex, leafHashes })
      sequence += count
    })
  }

  #settle(batch: readonly Pending[], settle: (pending: Pending) => void): void {
    for (const pending of batch) {
      this.#queuedEntries -= pending.group.entries.length
      this.#queuedBytes -= pending.group.body.length
      settle(pending)
    }
  }
}

/** Says whether the database may have refused what was to be written beside the block: without it, the block tells. */
function isOfBeside({ beside }: BuiltBlock, error: unknown): boolean {
  return beside !== undefined && isRefusedStatement(error)
}

function listGroupStarts(groups: readonly Group[]): number[] {
  let next = 0
  return groups.map((group) => {
    const start = next
    next += group.entries.length
    return start
  })
}
