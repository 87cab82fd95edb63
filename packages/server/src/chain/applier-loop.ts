import type { Log } from '../base/log.ts'
import type { World } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import {
  CommitUnknownError,
  findStorageProblem,
  isCancelled,
  isTransient,
} from '../database/errors.ts'
import { type AppliedBlock, type Applier, computeWatermark, openToApply } from './applier.ts'
import type { BlockStore, Watermark } from './block-store.ts'
import {
  makeClosedFault,
  makeNotShownFault,
  makeStoppedFault,
  type StorageRefusal,
} from './chain-faults.ts'
import { type CommittedBlock, HeldBlocks, stepBounds } from './held-blocks.ts'
import { LagMarks } from './lag-marks.ts'

export type ApplierLoopOptions = {
  /** See ChainOptions.relaxedTables. */
  readonly relaxed: boolean
  readonly database: Database
  readonly store: BlockStore
  /** Made by projections/make-applier.ts. */
  readonly applier: Applier
  readonly world: World
  readonly log: Log
  /** Names the chain in the log. */
  readonly chain: string
  readonly watermark: Watermark
}

type Waiter = {
  readonly height: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** One transaction of the applier, kept until its outcome is known. */
type Attempt = { readonly to: Watermark; after: (() => void) | undefined }

/** Attempts for one transaction; with the pauses between them about 15 minutes. */
const attemptsMax = 200
/** Longest backoff after a transaction. */
const backoffMsMax = 50
const pauseMinMs = 20
const pauseMaxMs = 5_000
/** The same after a statement that was cancelled, which has waited already. */
const cancelledPauseMaxMs = 250
/** An applier may build an index over a large table. */
const statementTimeoutMs = 600_000

/** Applies a chain's blocks one after the other, behind the commits. */
export class ApplierLoop {
  readonly #options: ApplierLoopOptions
  #watermark: Watermark
  /** Height up to which blocks are committed. */
  #target: number
  readonly #held = new HeldBlocks()
  readonly #marks = new LagMarks()
  #waiters: Waiter[] = []
  /** Callbacks of those who wait for the dependents. */
  #catchUps: (() => void)[] = []
  #working: Promise<void> | undefined
  /** By the world's ticks. */
  #backoffUntil = 0
  #endBackoff: (() => void) | undefined
  #failure: Error | undefined
  /** The storage's refusal of a write to the tables, unless it has taken one since. */
  storageRefusal: StorageRefusal | undefined
  #doubt: Attempt | undefined
  /**
   * True from before a commit until its outcome is known here: others may see the tables further than `#watermark`
   * says.
   */
  #isCommitting = false
  /**
   * Becomes 1 after a permanent failure, so that all blocks before the bad one are applied and the error can name it, and
   * after a statement that took too long, until one is applied.
   */
  #blocksMax: number = stepBounds.blocksMax
  #stopAt = Number.POSITIVE_INFINITY
  #ended = false

  constructor(options: ApplierLoopOptions) {
    this.#options = options
    this.#watermark = options.watermark
    this.#target = options.watermark.height
  }

  get watermark(): Watermark {
    return this.#watermark
  }

  /**
   * The watermark while nobody can see the tables anywhere else; another object after each change of them.
   * Dependents may change meanwhile.
   */
  get stillPosition(): Watermark | undefined {
    return this.#isCommitting ? undefined : this.#watermark
  }

  /** The error for which the loop stopped for good. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** Takes a freshly committed block, which must follow the last one pushed. */
  push(block: CommittedBlock): void {
    this.#marks.add(block)
    if (this.#failure !== undefined) return
    this.#held.add(block)
    this.applyUpTo(block.height)
  }

  /**
   * Time since which the oldest committed block waits, milliseconds since 1970, a little early; undefined where
   * none waits.
   */
  behindSince(): number | undefined {
    return this.#marks.oldestTime
  }

  /** Notes that blocks up to this height are committed, and applies them. */
  applyUpTo(height: number): void {
    // Without blocks the loop sleeps until the dependents are due.
    if (this.#watermark.height === this.#target) this.#endBackoff?.()
    this.#target = height
    this.#working ??= this.#work()
  }

  /** Resolves when this height is applied; rejects where the loop stops before. */
  whenApplied(height: number): Promise<void> {
    if (height <= this.#watermark.height) return Promise.resolve()
    const failure = this.#failure
      ? makeStoppedFault(this.#failure)
      : this.#ended
        ? makeClosedFault()
        : undefined
    if (failure !== undefined) return Promise.reject(failure)
    this.#endBackoff?.()
    return new Promise((resolve, reject) => this.#waiters.push({ height, resolve, reject }))
  }

  /** Resolves when the dependents have caught up with the tables of now, or can no longer do so. */
  whenCaughtUp(): Promise<void> {
    const isOver = this.#failure !== undefined || this.#ended
    if (this.#catchUpAt() === undefined || isOver) return Promise.resolve()
    this.#endBackoff?.()
    return new Promise((resolve) => {
      this.#catchUps.push(resolve)
      this.#working ??= this.#work()
    })
  }

  /** Applies committed blocks for at most this long, then ends after the transaction at hand. */
  async stop(drainMs: number): Promise<void> {
    this.#stopAt = Math.min(this.#stopAt, this.#options.world.now() + drainMs)
    this.#endBackoff?.()
    while (this.#working !== undefined) await this.#working
    this.#ended = true
    this.#rejectWaiters(makeClosedFault())
    this.#endCatchUps()
  }

  async #work(): Promise<void> {
    await Promise.resolve()
    try {
      while (this.#failure === undefined && !this.#isStopped()) {
        const restMs = this.#backoffMs()
        if (restMs === undefined) break
        if (restMs > 0) {
          await this.#backOff(restMs)
          continue
        }
        const startedAt = this.#options.world.ticks()
        await this.#applyNext()
        const endedAt = this.#options.world.ticks()
        this.#backoffUntil = endedAt + Math.min(endedAt - startedAt, backoffMsMax)
      }
    } catch (error) {
      this.#fail(error)
    }
    this.#working = undefined
  }

  /**
   * Milliseconds until the next transaction is due; undefined where there is nothing to do. While nobody waits, the
   * pause is as long as the last transaction: two blocks in one transaction cost hardly more than one, and under
   * load the pause lets them gather.
   */
  #backoffMs(): number | undefined {
    const hasBlocks = this.#hasBlocks()
    const catchUpAt = this.#catchUpAt()
    const isStopping = this.#stopAt !== Number.POSITIVE_INFINITY
    // On the next opening the dependents catch up.
    if (!hasBlocks && (catchUpAt === undefined || isStopping)) return undefined
    if (isStopping || this.#waiters.length > 0 || this.#catchUps.length > 0) return 0
    const never = Number.POSITIVE_INFINITY
    const nextAt = Math.min(hasBlocks ? this.#backoffUntil : never, catchUpAt ?? never)
    return Math.max(0, nextAt - this.#options.world.ticks())
  }

  #hasBlocks(): boolean {
    return this.#watermark.height < this.#target
  }

  #catchUpAt(): number | undefined {
    return this.#options.applier.catchUpAt?.()
  }

  /** Sleeps; ends early where somebody begins to wait. */
  async #backOff(restMs: number): Promise<void> {
    await Promise.race([
      this.#options.world.sleep(restMs),
      new Promise<void>((resolve) => {
        this.#endBackoff = resolve
      }),
    ])
    this.#endBackoff = undefined
  }

  async #applyNext(): Promise<void> {
    const { world, log, chain } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        const blocks = this.#hasBlocks() ? await this.#nextBlocks() : []
        await this.#apply(blocks)
        this.#held.release(this.#watermark.height)
        return
      } catch (error) {
        const refused = findStorageProblem(error)
        const cancelled = isCancelled(error)
        const retriable =
          refused !== undefined ||
          cancelled ||
          isTransient(error) ||
          error instanceof CommitUnknownError
        if (cancelled) this.#blocksMax = 1
        if (refused !== undefined) {
          // A full disk lasts until somebody makes room. Waiting callers are refused, and it does not count as an
          // attempt.
          this.#rejectWaiters(makeNotShownFault(refused, error))
          this.#endCatchUps()
          this.storageRefusal = { code: refused, atMs: this.#options.world.now() }
          attempt = Math.min(attempt, attemptsMax / 2)
        }
        // When stopping, the dependents are left to the next opening.
        if (retriable && this.#backoffMs() === undefined) return
        if (!retriable && this.#blocksMax > 1) {
          this.#blocksMax = 1
        } else if (!retriable || attempt >= attemptsMax || this.#isStopped()) {
          throw error
        } else {
          log.warn(
            { chain, attempt, error: String(error), height: this.#watermark.height + 1 },
            'applying blocks is tried again',
          )
          const pauseMs = pauseMinMs * 2 ** Math.min(attempt - 1, 10)
          await world.sleep(Math.min(pauseMs, cancelled ? cancelledPauseMaxMs : pauseMaxMs))
        }
      }
    }
  }

  /** Returns the next blocks: from memory where they are there, otherwise from the log, up to those in memory. */
  async #nextBlocks(): Promise<readonly AppliedBlock[]> {
    const from = this.#watermark.height + 1
    const held = this.#held.next(from, this.#blocksMax)
    if (held !== undefined) return held
    const to = Math.min(this.#target, this.#held.firstHeight - 1)
    const bounds = { ...stepBounds, blocksMax: this.#blocksMax }
    const rows = await this.#options.store.blocks({ from, to, ...bounds })
    if (rows[0]?.height !== from) throw new Error(`block ${from} is missing`)
    const blocks: AppliedBlock[] = []
    for (const row of rows) blocks.push(await openToApply(row))
    return blocks
  }

  async #apply(blocks: readonly AppliedBlock[]): Promise<void> {
    const { database, store, applier, world } = this.#options
    const attempt: Attempt = { to: computeWatermark(blocks) ?? this.#watermark, after: undefined }
    const step = { at: attempt.to, catchUp: this.#catchUps.length > 0 || blocks.length === 0 }
    // The watermark shows whether a crash has lost a relaxed commit; without blocks it does not move.
    const relaxed = this.#options.relaxed && blocks.length > 0
    try {
      await database.transaction(
        async (tx) => {
          // First of all, so that a loop which lost the chain waits or ends here.
          if (!(await store.advance(tx, this.#watermark, attempt.to))) throw new Overtaken()
          attempt.after = await applier.apply(tx, blocks, step)
          this.#isCommitting = true
          world.failpoint?.('applier.beforeCommit')
        },
        { statementTimeoutMs, relaxed },
      )
    } catch (error) {
      if (error instanceof Overtaken) return this.#applied(await this.#settleDoubt())
      if (error instanceof CommitUnknownError) this.#doubt = attempt
      throw error
    }
    world.failpoint?.('applier.afterCommit')
    this.#applied(attempt)
  }

  /**
   * Resolves a watermark that is not where this loop left it: our own attempt of unknown outcome, or another
   * producer.
   */
  async #settleDoubt(): Promise<Attempt> {
    const { height } = await this.#options.store.watermark()
    if (this.#doubt === undefined || this.#doubt.to.height !== height) {
      throw new TablesMovedError(height)
    }
    return this.#doubt
  }

  #applied({ to, after }: Attempt): void {
    this.#doubt = undefined
    this.#blocksMax = stepBounds.blocksMax
    this.storageRefusal = undefined
    after?.()
    this.#watermark = to
    this.#isCommitting = false
    this.#marks.forget(to.height, { isAll: to.height >= this.#target })
    const reached = this.#waiters.filter((waiter) => waiter.height <= to.height)
    this.#waiters = this.#waiters.filter((waiter) => waiter.height > to.height)
    for (const waiter of reached) waiter.resolve()
    if (this.#catchUpAt() === undefined) this.#endCatchUps()
  }

  #endCatchUps(): void {
    const waiting = this.#catchUps
    this.#catchUps = []
    for (const resolve of waiting) resolve()
  }

  #isStopped(): boolean {
    return this.#options.world.now() >= this.#stopAt
  }

  #fail(error: unknown): void {
    const { log, chain } = this.#options
    const height = this.#watermark.height + 1
    const what = this.#hasBlocks() ? `block ${height}` : 'what follows the tables'
    this.#failure = new Error(`${what} cannot be applied: ${String(error)}`, { cause: error })
    this.#held.clear()
    log.error({ chain, height, error: String(error) }, 'the applier stopped')
    this.#rejectWaiters(makeStoppedFault(this.#failure))
    this.#endCatchUps()
  }

  #rejectWaiters(error: Error): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) waiter.reject(error)
  }
}

/** The watermark is not where this loop left it. */
class Overtaken extends Error {}

/**
 * Another producer, which holds the chain or held it before, has applied blocks: what is remembered of the tables is
 * old.
 */
export class TablesMovedError extends Error {
  constructor(height: number) {
    super(`another producer has moved the watermark to ${height}`)
  }
}
