/** Time for which a file counts as intact after it was read. */
const rememberedMs = 10 * 60_000
const rememberedMax = 1_000

/** The outcome of a reading, which may still run. */
type Known = { readonly untilMs: number; readonly look: Promise<boolean> }

/**
 * Remembers which files were read and found intact a short time ago, and lets those who ask at once share one reading: a
 * file is sold as often as somebody likes, and each reading is of all its bytes. A file that was not intact is read anew.
 */
export class IntactFiles {
  readonly #now: () => number
  readonly #known = new Map<string, Known>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Says whether the file of this name is intact; `read` reads it. */
  async check(name: string, read: () => Promise<boolean>): Promise<boolean> {
    const known = this.#known.get(name)
    if (known !== undefined && this.#now() < known.untilMs) return known.look
    const running = { untilMs: Number.POSITIVE_INFINITY, look: read() }
    this.#put(name, running)
    let isIntact = false
    try {
      isIntact = await running.look
      return isIntact
    } finally {
      if (this.#known.get(name) === running) {
        this.#known.delete(name)
        if (isIntact) this.#put(name, { ...running, untilMs: this.#now() + rememberedMs })
      }
    }
  }

  /** The oldest goes where there are too many. */
  #put(name: string, one: Known): void {
    this.#known.delete(name)
    this.#known.set(name, one)
    const [oldest] = this.#known.keys()
    if (this.#known.size > rememberedMax && oldest !== undefined) this.#known.delete(oldest)
  }
}
