import { limits } from '@tollbase/contract/limits'
import { Fault } from '../base/fault.ts'
import {
  CommitUnknownError,
  findStorageProblem,
  isCancelled,
  isRefusedStatement,
  isTransient,
  isUnanswered,
  isUniqueViolation,
} from '../database/errors.ts'
import { type Beside, BesideRefusedError } from './beside.ts'
import type { BlockStore } from './block-store.ts'
import {
  type BlockMaker,
  type BuiltBlock,
  buildBlock,
  type Head,
  type Waiting,
} from './build-block.ts'
import { isStorageFault, type StorageRefusal, toCommitFault } from './chain-faults.ts'
import { getCurrentNote } from './commit-notes.ts'
import type { Group } from './entries.ts'
import { isTakenOver } from './insert-block.ts'
import type { CompletedTile } from './merkle.ts'

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

/** The committer owns the tree from now on; it has the size of `head`. */
export type CommitterOptions = BlockMaker & {
  readonly store: BlockStore
  readonly insertBlock: (block: BuiltBlock) => Promise<void>
  readonly head: Head
  /** Bytes of the bodies of all blocks up to `head`. */
  readonly bytes: number
  /** Throws where the chain is not ours any more. */
  readonly ensureLease: () => Promise<void>
  /** The block that made these tiles full was not committed. */
  readonly onTilesDropped: (tiles: readonly CompletedTile[]) => void
  readonly onCommitted: (block: BuiltBlock) => void
  readonly onFailure: (error: unknown) => void
}

type Pending = Waiting & {
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: unknown) => void
}

/** Attempts for one block; with the pauses between them about 20 seconds. */
const attemptsMax = 14
const pauseMinMs = 20
const pauseMaxMs = 2_000
/** Entries up to which groups share a block; with more, the sender of the first would wait for the last. */
const sharedEntriesMax = 1_000

/**
 * Group commit: one block is on its way at a time, and entries that arrive meanwhile go into the next block. A built
 * block is committed exactly as it is. If the storage refuses it and certainly does not have it, the whole block is
 * refused. In any other case the committer fails for good, and reopening the chain finds out which blocks the database
 * has.
 */
export class Committer {
  readonly #options: CommitterOptions
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

  /**
   * Resolves once the group's block is durable, with what is written beside it; a BesideRefusedError where that is
   * refused.
   */
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
    const { tree, onTilesDropped, onFailure } = this.#options
    // Appends of the same turn of the event loop share the first block.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const batch = this.#takeBatch()
      const before = tree.mark()
      let block: BuiltBlock | undefined
      try {
        block = await buildBlock(batch, this.#head, this.#options)
        await this.#commit(block)
        this.#committed(block, batch)
      } catch (error) {
        if (block !== undefined && this.#settleRefused(batch, error)) {
          tree.rollBack(before)
          onTilesDropped(block.tiles)
        } else {
          const failure = toCommitFault(error)
          this.#settle(batch, (pending) => pending.reject(failure))
          this.fail(failure)
          onFailure(error)
        }
      }
    }
    this.#working = undefined
  }

  /**
   * Settles who is refused where the block surely is not there: all, or those alone that wanted more than a block. False
   * where it may be there.
   */
  #settleRefused(batch: readonly Pending[], error: unknown): boolean {
    if (error instanceof BesideRefusedError) {
      const hasBeside = (one: Pending) => one.beside !== undefined
      this.#settle(batch.filter(hasBeside), (pending) => pending.reject(error))
      this.#queue.unshift(...batch.filter((one) => !hasBeside(one)))
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

  /**
   * Inserts the block until it is there. After a lost connection its fate is unknown, so the same bytes are sent
   * again: the primary key refuses them where they are there already, or where another producer was first. Where the
   * storage refuses them then, the attempt before may still be on its way, and no look at the table shows that: it is
   * waited for, and at the end the outcome is unknown.
   */
  async #commit(block: BuiltBlock): Promise<void> {
    const { world, ensureLease } = this.#options
    let lost: unknown
    for (let attempt = 1; ; attempt++) {
      try {
        await ensureLease()
        world.failpoint?.('block.beforeCommit')
        await this.#insert(block)
        world.failpoint?.('block.afterCommit')
        return
      } catch (error) {
        const isRefused = findStorageProblem(error) !== undefined
        if (isRefused && (await this.#isStored(block, error))) return
        if (isUnanswered(error)) lost = error
        const isWaitedFor = isRefused && lost !== undefined
        const retriable =
          isTransient(error) || isCancelled(error) || error instanceof CommitUnknownError
        if (!(retriable || isWaitedFor)) throw error
        if (attempt === attemptsMax) throw lost ?? error
        await world.sleep(Math.min(pauseMinMs * 2 ** (attempt - 1), pauseMaxMs))
      }
    }
  }

  /** A connection lost while judging the conflict leads to another attempt too. */
  async #insert(block: BuiltBlock): Promise<void> {
    try {
      await this.#options.insertBlock(block)
    } catch (error) {
      if (isTakenOver(error)) throw makeTakenOverFault(block, error)
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
    throw makeTakenOverFault(block, error)
  }

  /** An earlier attempt, whose connection was lost, may have been the one that counts. */
  async #isStored(block: BuiltBlock, error: unknown): Promise<boolean> {
    if ((await this.#options.store.block(block.height)) === undefined) return false
    await this.#judgeConflict(block, error)
    return true
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

function makeTakenOverFault({ height }: BuiltBlock, cause: unknown): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'Another server has taken over this application.',
    internal: `another holder has the chain, or has produced its block ${height}`,
    retryAfterSeconds: 1,
    cause,
  })
}

/** Says whether the database may have refused what was to be written beside the block: without it, the block tells. */
function isOfBeside({ beside }: BuiltBlock, error: unknown): boolean {
  return beside !== undefined && isRefusedStatement(error)
}
