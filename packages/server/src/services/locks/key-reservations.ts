/** One write's hold on keys that must be new. */
export type Reservation = {
  /** The key that another write put into the log since, if any. */
  readonly findOvertaken: () => string | undefined
  readonly release: () => void
}

/**
 * Keys reserved by writes that refuse existing keys: such a write holds its keys until it is projected, and learns
 * of every other write of its collection that the tables do not show yet.
 */
export class KeyReservations {
  /** True, by collection and key, if a write that takes any key came in between. */
  readonly #held = new Map<string, boolean>()
  readonly #underWay = new Map<string, Set<Promise<unknown>>>()
  /** By collection: the last block with a write that holds no keys. */
  readonly #heights = new Map<string, number>()

  /** Reserves the keys, or returns the one that another write holds. */
  reserve(collection: string, keys: readonly string[]): Reservation | string {
    const names: string[] = []
    const release = () => {
      for (const name of names) this.#held.delete(name)
    }
    for (const key of keys) {
      const name = formatName(collection, key)
      if (this.#held.has(name)) {
        release()
        return key
      }
      this.#held.set(name, false)
      names.push(name)
    }
    return {
      release,
      findOvertaken: () => keys.find((key) => this.#held.get(formatName(collection, key))),
    }
  }

  /** Marks held keys as overtaken by a write that takes any key and gets its place in the log now. */
  markOvertaken(collection: string, names: () => readonly string[]): void {
    if (this.#held.size === 0) return
    for (const key of names()) {
      const name = formatName(collection, key)
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

  /** Returns the height at which the tables show all writes so far that hold no keys. */
  async resolveHeight(collection: string): Promise<number> {
    // `follow` waits for the same promises, and since before, so it has noted their heights by then.
    await Promise.allSettled([...(this.#underWay.get(collection) ?? [])])
    return this.#heights.get(collection) ?? 0
  }
}

function formatName(collection: string, key: string): string {
  return `${collection}\u0000${key}`
}
