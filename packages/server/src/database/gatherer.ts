import { endsSession } from './errors.ts'

type Waiting<Item, Outcome> = {
  readonly item: Item
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

/** Items of one batch: who is the last of it waits for all before. */
const batchMax = 128

/**
 * Group commit: one batch is under way at a time, and what comes meanwhile goes into the next, so many that wait cost a
 * few statements together. Example: 32 purchases at once are one transaction, or two.
 */
export class Gatherer<Item, Outcome> {
  readonly #run: (items: readonly Item[]) => Promise<readonly Outcome[]>
  #waiting: Waiting<Item, Outcome>[] = []
  #isWorking = false

  /** `run` gives an outcome for each item, in their order. What it did before it throws must be undone by then. */
  constructor(run: (items: readonly Item[]) => Promise<readonly Outcome[]>) {
    this.#run = run
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
      await this.#settle(this.#waiting.splice(0, batchMax))
    }
    this.#isWorking = false
  }

  async #settle(batch: readonly Waiting<Item, Outcome>[]): Promise<void> {
    try {
      const outcomes = await this.#run(batch.map(({ item }) => item))
      for (const [at, { resolve }] of batch.entries()) resolve(outcomes[at] as Outcome)
    } catch (error) {
      // One that the database refuses must not take the others with it; a lost connection is nobody's fault.
      if (batch.length > 1 && !endsSession(error))
        for (const one of batch) await this.#settle([one])
      else for (const { reject } of batch) reject(error)
    }
  }
}
