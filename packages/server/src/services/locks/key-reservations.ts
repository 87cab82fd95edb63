/** One write's hold on keys that must be new. */
export type Reservation = {
  /** The key that another write put into the log since, if any. */
  readonly overtaken: () => string | undefined
  readonly release: () => void
}

/**
 * Records on their way into the tables, for writes that refuse existing keys: such a write holds its keys until it
 * is projected, and learns of every other write of its collection that the tables do not show yet.
 */
export class Arrivals {
  /** By collection and key: whether a write that takes any key came in between. */
  readonly #held = new Map<string, boolean>()
  readonly #underWay = new Map<string, Set<Promise<unknown>>>()
  /** By collection: the last block with a write that holds no keys. */
  readonly #heights = new Map<string, number>()

  /** Holds the keys, or gives the one that somebody else holds. */
  hold(collection: string, keys: readonly string[]): Reservation | string {
    const names: string[] = []
    const release = () => {
      for (const name of names) this.#held.delete(name)
    }
    for (const key of keys) {
      const name = nameOf(collection, key)
      if (this.#held.has(name)) {
        release()
        return key
      }
      this.#held.set(name, false)
      names.push(name)
    }
    return { release, overtaken: () => keys.find((key) => this.#held.get(nameOf(collection, key))) }
  }

  /** A write that takes any key gets its place in the log now. */
  pass(collection: string, names: () => readonly string[]): void {
    if (this.#held.size === 0) return
    for (const key of names()) {
      const name = nameOf(collection, key)
      if (this.#held.has(name)) this.#held.set(name, true)
    }
  }

  /** Follows a write that takes any key until it is in a block. */
  async follow<T extends { readonly height: number }>(
    collection: string,
    write: Promise<T>,
  ): Promise<T> {
    const writes = this.#underWay.get(collection) ?? new Set()
    this.#underWay.set(collection, writes)
    writes.add(write)
    try {
      const written = await write
      this.#heights.set(collection, Math.max(this.#heights.get(collection) ?? 0, written.height))
      return written
    } finally {
      writes.delete(write)
    }
  }

  /** The height at which the tables show all writes, so far, that hold no keys. */
  async height(collection: string): Promise<number> {
    // `follow` waits for the same promises, and since before, so it has noted their heights by then.
    await Promise.allSettled([...(this.#underWay.get(collection) ?? [])])
    return this.#heights.get(collection) ?? 0
  }
}

function nameOf(collection: string, key: string): string {
  return `${collection}\u0000${key}`
}
