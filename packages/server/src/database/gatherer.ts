import { endsSession, isCancelled } from './errors.ts'

type Waiting<Item, Outcome> = {
  readonly item: Item
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

/** Items of one batch: who is the last of it waits for all before. */
const batchMax = 128
/** Bytes of one batch: a statement with many large answers would be longer than a text can be. */
const batchBytesMax = 16 * 1024 * 1024

/**
 * Group commit: one batch is under way at a time, and what comes meanwhile goes into the next, so many that wait cost a
 * few statements together. Example: 32 purchases at once are one transaction, or two.
 */
export class Gatherer<Item, Outcome> {
  readonly #run: (items: readonly Item[]) => Promise<readonly Outcome[]>
  readonly #weigh: (item: Item) => number
  #waiting: Waiting<Item, Outcome>[] = []
  #isWorking = false

  /**
   * `run` gives an outcome for each item, in their order. Where it throws, all that it did before is undone by then. `weigh`
   * gives the bytes of an item where it may have many.
   */
  constructor(
    run: (items: readonly Item[]) => Promise<readonly Outcome[]>,
    weigh: (item: Item) => number = () => 0,
  ) {
    this.#run = run
    this.#weigh = weigh
  }

  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (!this.#isWorking) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#isWorking = true
    while (this.#waiting.length > 0) {
      // Those of the same turn of the event loop share a batch.
      await new Promise(setImmediate)
      await this.#settle(this.#waiting.splice(0, this.#countNext()))
    }
    this.#isWorking = false
  }

  /** Counts the items of the next batch; one that is too large is a batch of its own. */
  #countNext(): number {
    let bytes = 0
    let count = 0
    for (const { item } of this.#waiting.slice(0, batchMax)) {
      bytes += this.#weigh(item)
      if (count > 0 && bytes > batchBytesMax) break
      count += 1
    }
    return count
  }

  async #settle(batch: readonly Waiting<Item, Outcome>[]): Promise<void> {
    try {
      const outcomes = await this.#run(batch.map(({ item }) => item))
      for (const [at, { resolve }] of batch.entries()) resolve(outcomes[at] as Outcome)
    } catch (error) {
      // One that the database refuses must not take the others with it. A lost connection is nobody's fault, and where
      // a lock took too long, one after the other would wait for it as long again.
      if (batch.length > 1 && !endsSession(error) && !isCancelled(error))
        for (const one of batch) await this.#settle([one])
      else for (const { reject } of batch) reject(error)
    }
  }
}
