/**
 * Runs work on one payment at a time in this process: a caller with the same payment for the same purpose shares
 * the outcome; a caller for another purpose waits, and finds what the first one left.
 */
export class Singleflight {
  readonly #busy = new Map<string, { purpose: string; outcome: Promise<unknown> }>()

  get size(): number {
    return this.#busy.size
  }

  has(identity: string): boolean {
    return this.#busy.has(identity)
  }

  async run<T>(identity: string, purpose: string, work: () => Promise<T>): Promise<T> {
    for (;;) {
      const busy = this.#busy.get(identity)
      if (busy === undefined) break
      // The purpose names the kind of work and its request, so what is awaited is a T.
      if (busy.purpose === purpose) return busy.outcome as Promise<T>
      await busy.outcome.catch(() => undefined)
    }
    const outcome = work()
    this.#busy.set(identity, { purpose, outcome })
    try {
      return await outcome
    } finally {
      this.#busy.delete(identity)
    }
  }
}
