import { endsSession, isCancelled } from './errors.ts'

type Waiting<Item, Outcome> = {
  readonly item: Item
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

/** The most items of one batch: the last one waits for all before it. */
const batchMax = 128
/** Bytes of one batch: a statement with many large answers would be longer than a text can be. */
const batchBytesMax = 16 * 1024 * 1024

/**
 * Group commit: one batch runs at a time, and items that arrive meanwhile go into the next batch. So many waiting items
 * cost only a few statements. Example: 32 purchases that come together take one transaction, or two.
 */
export class Gatherer<Item, Outcome> {
  readonly #run: (items: readonly Item[]) => Promise<readonly Outcome[]>
  readonly #weigh: (item: Item) => number
  readonly #bytesMax: number
  #waiting: Waiting<Item, Outcome>[] = []
  #isWorking = false

  /**
   * `run` returns one outcome for each item, in their order. If it throws, it must have undone everything that it did.
   * `weigh` returns the bytes of an item, if items can be large; `bytesMax` bounds those of a batch.
   */
  constructor(
    run: (items: readonly Item[]) => Promise<readonly Outcome[]>,
    weigh: (item: Item) => number = () => 0,
    bytesMax: number = batchBytesMax,
  ) {
    this.#run = run
    this.#weigh = weigh
    this.#bytesMax = bytesMax
  }

  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (!this.#isWorking) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#isWorking = true
    // Those of the same turn of the event loop share the first batch.
    await takeTurn()
    let tell: () => void = () => undefined
    while (this.#waiting.length > 0) {
      const next = this.#settle(this.#waiting.splice(0, this.#countNext()))
      // The database works on this batch while those of the last one go on.
      await takeTurn()
      tell()
      tell = await next
    }
    this.#isWorking = false
    tell()
  }

  /** Counts the items of the next batch; one that is too large is a batch of its own. */
  #countNext(): number {
    let bytes = 0
    let count = 0
    for (const { item } of this.#waiting.slice(0, batchMax)) {
      bytes += this.#weigh(item)
      if (count > 0 && bytes > this.#bytesMax) break
      count += 1
    }
    return count
  }

  /** Runs a batch; returns what tells those that wait for it. */
  async #settle(batch: readonly Waiting<Item, Outcome>[]): Promise<() => void> {
    try {
      const outcomes = await this.#run(batch.map(({ item }) => item))
      return () => {
        for (const [at, { resolve }] of batch.entries()) resolve(outcomes[at] as Outcome)
      }
    } catch (error) {
      // One refused item must not fail the others, so each is tried alone. A lost connection is no item's fault, and
      // after a lock time-out each item would wait for the same lock again: both fail the whole batch.
      const isAlone = batch.length === 1 || endsSession(error) || isCancelled(error)
      if (isAlone)
        return () => {
          for (const { reject } of batch) reject(error)
        }
      for (const one of batch) (await this.#settle([one]))()
      return () => undefined
    }
  }
}

/** Waits for the next turn of the event loop. */
function takeTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
