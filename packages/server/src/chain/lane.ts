import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import { CommitUnknownError, isTransient, storageProblem } from '../database/errors.ts'
import { type AppliedBlock, type Applier, appliedBlock } from './applier.ts'
import { openBlock } from './block.ts'
import type { BlockStore, Watermark } from './block-store.ts'
import type { ChainLog } from './log.ts'

export type LaneOptions = {
  /** See ChainOptions.relaxedTables. */
  readonly relaxed: boolean
  readonly database: Database
  readonly store: BlockStore
  readonly applier: Applier
  readonly world: World
  readonly log: ChainLog
  /** Names the chain in the log. */
  readonly chain: string
  readonly watermark: Watermark
}

type Waiter = {
  readonly height: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** A block that was committed just now; `open` makes its entries when their turn comes. */
export type CommittedBlock = {
  readonly height: number
  readonly bytes: number
  readonly entries: number
  /** When it was committed, milliseconds since 1970. */
  readonly time: number
  readonly open: () => AppliedBlock
}

/** One transaction of the applier, kept until it is known whether it was committed. */
type Attempt = { readonly to: Watermark; after: (() => void) | undefined }

/** Of one transaction. With more entries, who waits for the first would wait for the last. */
const blocksMax = 64
const entriesMax = 1_000
const bytesMax = 16 * 1024 * 1024
/** Of blocks waiting in memory; what does not fit is read from the log again. */
const heldBytesMax = 32 * 1024 * 1024
const heldBlocksMax = 4_096
/** Attempts for one transaction; with the pauses between them about 15 minutes. */
const attemptsMax = 200
/** Times of commits closer together than this are not told apart. */
const markMs = 250
/** The longest rest after a transaction. */
const restMsMax = 50
const pauseMinMs = 20
const pauseMaxMs = 5_000
/** An applier may build an index over a large table. */
const statementTimeoutMs = 600_000

/** Applies a chain's blocks one after the other, behind the commits. */
export class Lane {
  readonly #options: LaneOptions
  #watermark: Watermark
  /** Height up to which blocks are committed. */
  #target: number
  #held: CommittedBlock[] = []
  #heldBytes = 0
  /** Blocks not applied yet, one for each stretch of time, oldest first. */
  #marks: { readonly height: number; readonly time: number }[] = []
  #waiters: Waiter[] = []
  #working: Promise<void> | undefined
  /** By the world's ticks. */
  #restUntil = 0
  #endRest: (() => void) | undefined
  #failure: Error | undefined
  #doubt: Attempt | undefined
  /** From before a commit until it is known here: others may see the tables further than `#watermark` says. */
  #isCommitting = false
  /** Single blocks after a permanent failure, so that all before the bad one are applied and it can be named. */
  #blocksMax = blocksMax
  #stopAt = Number.POSITIVE_INFINITY
  #ended = false

  constructor(options: LaneOptions) {
    this.#options = options
    this.#watermark = options.watermark
    this.#target = options.watermark.height
  }

  get watermark(): Watermark {
    return this.#watermark
  }

  /** The watermark while nobody can see the tables anywhere else; another object after each change of them. */
  get settled(): Watermark | undefined {
    return this.#isCommitting ? undefined : this.#watermark
  }

  /** Why the lane stopped for good. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** Takes over a block that was committed just now, the one after the last given. */
  push(block: CommittedBlock): void {
    const last = this.#marks.at(-1)
    if (last === undefined || block.time - last.time >= markMs)
      this.#marks.push({ height: block.height, time: block.time })
    if (this.#failure !== undefined) return
    if (this.#held.length < heldBlocksMax && this.#heldBytes + block.bytes <= heldBytesMax) {
      this.#held.push(block)
      this.#heldBytes += block.bytes
    }
    this.applyUpTo(block.height)
  }

  /** Since when the oldest committed block waits, milliseconds since 1970, a little early; undefined where none does. */
  behindSince(): number | undefined {
    return this.#marks[0]?.time
  }

  /** Blocks up to this height are committed. */
  applyUpTo(height: number): void {
    this.#target = height
    this.#working ??= this.#work()
  }

  /** Resolves when this height is applied; rejects where the lane stops before. */
  whenApplied(height: number): Promise<void> {
    if (height <= this.#watermark.height) return Promise.resolve()
    const failure = this.#failure ? stopped(this.#failure) : this.#ended ? closed() : undefined
    if (failure !== undefined) return Promise.reject(failure)
    this.#endRest?.()
    return new Promise((resolve, reject) => this.#waiters.push({ height, resolve, reject }))
  }

  /** Applies what is committed for so long at most, then ends after the transaction at hand. */
  async stop(drainMs: number): Promise<void> {
    this.#stopAt = Math.min(this.#stopAt, this.#options.world.now() + drainMs)
    this.#endRest?.()
    while (this.#working !== undefined) await this.#working
    this.#ended = true
    this.#rejectWaiters(closed())
  }

  async #work(): Promise<void> {
    await Promise.resolve()
    try {
      while (
        this.#watermark.height < this.#target &&
        this.#failure === undefined &&
        !this.#isStopped()
      ) {
        await this.#rest()
        const startedAt = this.#options.world.ticks()
        await this.#applyNext()
        const endedAt = this.#options.world.ticks()
        this.#restUntil = endedAt + Math.min(endedAt - startedAt, restMsMax)
      }
    } catch (error) {
      this.#fail(error)
    }
    this.#working = undefined
  }

  /**
   * Rests as long as the last transaction took, while nobody waits: two blocks in one transaction cost hardly more than
   * one, and under load this is what makes them two.
   */
  async #rest(): Promise<void> {
    const { world } = this.#options
    const restMs = this.#restUntil - world.ticks()
    if (restMs <= 0 || this.#waiters.length > 0 || this.#stopAt !== Number.POSITIVE_INFINITY) return
    await Promise.race([
      world.sleep(restMs),
      new Promise<void>((resolve) => {
        this.#endRest = resolve
      }),
    ])
    this.#endRest = undefined
  }

  async #applyNext(): Promise<void> {
    const { world, log, chain } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        const blocks = await this.#nextBlocks()
        await this.#apply(blocks)
        this.#release()
        return
      } catch (error) {
        const refused = storageProblem(error)
        const retriable =
          refused !== undefined || isTransient(error) || error instanceof CommitUnknownError
        if (refused !== undefined) {
          // It lasts until somebody makes room: nobody waits so long, and it does not count as an attempt.
          this.#rejectWaiters(notShown(refused, error))
          attempt = Math.min(attempt, attemptsMax / 2)
        }
        if (!retriable && this.#blocksMax > 1) {
          this.#blocksMax = 1
        } else if (!retriable || attempt >= attemptsMax || this.#isStopped()) {
          throw error
        } else {
          log.warn(
            { chain, attempt, error: String(error), height: this.#watermark.height + 1 },
            'applying blocks is tried again',
          )
          await world.sleep(Math.min(pauseMinMs * 2 ** Math.min(attempt - 1, 10), pauseMaxMs))
        }
      }
    }
  }

  /** The next blocks: from memory where they are there, otherwise from the log, up to those in memory. */
  async #nextBlocks(): Promise<readonly AppliedBlock[]> {
    const from = this.#watermark.height + 1
    const first = this.#held[0]
    if (first === undefined || first.height !== from) {
      const to = Math.min(this.#target, (first?.height ?? Number.POSITIVE_INFINITY) - 1)
      const rows = await this.#options.store.blocks({
        from,
        to,
        blocksMax: this.#blocksMax,
        bytesMax,
      })
      if (rows[0]?.height !== from) throw new Error(`block ${from} is missing`)
      return rows.map((row) => appliedBlock(openBlock(row)))
    }
    const blocks: AppliedBlock[] = []
    let [bytes, entries] = [0, 0]
    for (const held of this.#held) {
      bytes += held.bytes
      entries += held.entries
      const follows = held.height === from + blocks.length
      const isMore = blocks.length > 0 && (bytes > bytesMax || entries > entriesMax)
      if (!follows || blocks.length === this.#blocksMax || isMore) break
      blocks.push(held.open())
    }
    return blocks
  }

  async #apply(blocks: readonly AppliedBlock[]): Promise<void> {
    const { database, store, applier, world } = this.#options
    const attempt: Attempt = { to: watermarkAfter(blocks), after: undefined }
    try {
      await database.transaction(
        async (tx) => {
          // First of all, so that a lane which lost the chain waits or ends here. The rest goes out with it.
          const [advance, apply] = await Promise.allSettled([
            store.advance(tx, this.#watermark, attempt.to),
            applier.apply(tx, blocks),
          ])
          if (advance.status === 'rejected') throw advance.reason
          if (!advance.value) throw new Overtaken()
          if (apply.status === 'rejected') throw apply.reason
          attempt.after = apply.value
          this.#isCommitting = true
          world.reach?.('applier.beforeCommit')
        },
        { statementTimeoutMs, relaxed: this.#options.relaxed },
      )
    } catch (error) {
      if (error instanceof Overtaken) return this.#applied(await this.#settleDoubt())
      if (error instanceof CommitUnknownError) this.#doubt = attempt
      throw error
    }
    world.reach?.('applier.afterCommit')
    this.#applied(attempt)
  }

  /** The watermark was not where this lane left it: our own attempt of unknown outcome, or another producer. */
  async #settleDoubt(): Promise<Attempt> {
    const { height } = await this.#options.store.watermark()
    if (this.#doubt === undefined || this.#doubt.to.height !== height) {
      throw new Error(`another producer has moved the watermark to ${height}`)
    }
    return this.#doubt
  }

  #applied({ to, after }: Attempt): void {
    this.#doubt = undefined
    after?.()
    this.#watermark = to
    this.#isCommitting = false
    this.#forgetMarks(to.height)
    const reached = this.#waiters.filter((waiter) => waiter.height <= to.height)
    this.#waiters = this.#waiters.filter((waiter) => waiter.height > to.height)
    for (const waiter of reached) waiter.resolve()
  }

  /** The mark at or before the oldest block that waits stays: that block was committed at its time or a little later. */
  #forgetMarks(applied: number): void {
    if (applied >= this.#target) this.#marks = []
    const next = this.#marks.findIndex(({ height }) => height > applied + 1)
    const stay = next < 0 ? this.#marks.length - 1 : next - 1
    if (stay > 0) this.#marks.splice(0, stay)
  }

  #release(): void {
    let count = 0
    for (const { height, bytes } of this.#held) {
      if (height > this.#watermark.height) break
      this.#heldBytes -= bytes
      count += 1
    }
    this.#held.splice(0, count)
  }

  #isStopped(): boolean {
    return this.#options.world.now() >= this.#stopAt
  }

  #fail(error: unknown): void {
    const { log, chain } = this.#options
    const height = this.#watermark.height + 1
    this.#failure = new Error(`block ${height} cannot be applied: ${String(error)}`, {
      cause: error,
    })
    this.#held = []
    this.#heldBytes = 0
    log.error({ chain, height, error: String(error) }, 'the applier stopped')
    this.#rejectWaiters(stopped(this.#failure))
  }

  #rejectWaiters(error: Error): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) waiter.reject(error)
  }
}

/** The watermark is not where this lane left it. */
class Overtaken extends Error {}

function watermarkAfter(blocks: readonly AppliedBlock[]): Watermark {
  const last = blocks[blocks.length - 1]
  if (last === undefined) throw new Error('there is no block to apply')
  const { height, firstLeaf, entries } = last
  return { height, sequence: entries.length - 1, leaf: firstLeaf + entries.length }
}

/** The entries are on the chain; who asks again finds it opened anew. */
function closed(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'The chain was closed before this height was applied; it is committed.',
    retryAfterSeconds: 1,
  })
}

function notShown(code: 'STORAGE_FULL' | 'STORAGE_READ_ONLY', cause: unknown): Fault {
  return new Fault(code, {
    message: 'This is committed; it is shown once the storage takes writes again.',
    internal: String(cause),
    cause,
    retryAfterSeconds: 10,
  })
}

function stopped(failure: Error): Fault {
  return new Fault('UNAVAILABLE', {
    internal: failure.message,
    cause: failure,
    retryAfterSeconds: 1,
  })
}
