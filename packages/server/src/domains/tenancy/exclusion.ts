type Hold = { readonly ended: Promise<void>; readonly waiting: (() => void)[] }

/**
 * Collections that some work has to itself: what it reads is still so when its entries take their place in the log.
 * Writes of others to them wait meanwhile, and go before the next such work; other collections notice nothing.
 */
export class Exclusion {
  readonly #holds = new Map<string, Hold>()

  /** Appends now, or, where somebody has the collection to himself, as soon as he has ended. */
  enter<T>(collection: string, append: () => Promise<T>): Promise<T> {
    const hold = this.#holds.get(collection)
    if (hold === undefined) return append()
    return new Promise((resolve, reject) => {
      hold.waiting.push(() => append().then(resolve, reject))
    })
  }

  /** Does the work while nobody else appends to the collections. All are taken at once, so nobody waits in a circle. */
  async run<T>(collections: readonly string[], work: () => Promise<T>): Promise<T> {
    for (let hold = this.#first(collections); hold !== undefined; hold = this.#first(collections))
      await hold.ended
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const hold: Hold = { ended, waiting: [] }
    for (const collection of collections) this.#holds.set(collection, hold)
    try {
      return await work()
    } finally {
      for (const collection of collections) this.#holds.delete(collection)
      for (const enter of hold.waiting) enter()
      end()
    }
  }

  #first(collections: readonly string[]): Hold | undefined {
    return collections.map((one) => this.#holds.get(one)).find((hold) => hold !== undefined)
  }
}
