/**
 * Runs work on one thing, such as a payment, at a time in this process: a caller with the same task shares the outcome; a
 * caller with another one waits, and finds what the first one left.
 */
export class Singleflight {
  readonly #busy = new Map<string, { task: string; outcome: Promise<unknown> }>()

  get size(): number {
    return this.#busy.size
  }

  has(identity: string): boolean {
    return this.#busy.has(identity)
  }

  async run<T>(identity: string, task: string, work: () => Promise<T>): Promise<T> {
    for (;;) {
      const busy = this.#busy.get(identity)
      if (busy === undefined) break
      // A task names the kind of work and its request, so what is awaited is a T.
      if (busy.task === task) return busy.outcome as Promise<T>
      await busy.outcome.catch(() => undefined)
    }
    const outcome = work()
    this.#busy.set(identity, { task, outcome })
    try {
      return await outcome
    } finally {
      this.#busy.delete(identity)
    }
  }
}
