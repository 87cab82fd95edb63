/**
 * Runs work on one thing, such as a payment, at a time in this process: a caller with the same task shares the outcome; a
 * caller with another one waits, and finds what the first one left.
 */
export class Singleflight {
  /** The tasks of each thing, in their order: the first one runs. */
  readonly #lines = new Map<string, Map<string, Promise<unknown>>>()

  get size(): number {
    return this.#lines.size
  }

  has(identity: string): boolean {
    return this.#lines.has(identity)
  }

  /**
   * Returns true where so many other tasks wait for their turn. Strangers may bring one thing in any number of forms, each
   * of which waits for all before it.
   */
  isFull(identity: string, task: string, waitingMax: number): boolean {
    const line = this.#lines.get(identity)
    return line !== undefined && line.size > waitingMax && !line.has(task)
  }

  async run<T>(identity: string, task: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(identity) ?? new Map<string, Promise<unknown>>()
    // A task names the kind of work and its request, so what is awaited is a T.
    const shared = line.get(task)
    if (shared !== undefined) return shared as Promise<T>
    const last = [...line.values()].at(-1)
    const outcome = last === undefined ? work() : last.catch(() => undefined).then(() => work())
    this.#lines.set(identity, line.set(task, outcome))
    try {
      return await outcome
    } finally {
      line.delete(task)
      if (line.size === 0) this.#lines.delete(identity)
    }
  }
}
