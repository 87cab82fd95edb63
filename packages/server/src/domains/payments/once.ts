import { Fault } from '../../base/fault.ts'

/**
 * Work on one payment at a time in this process: whoever comes with the same payment for the same purpose
 * shares the outcome; for another purpose it is refused.
 */
export class Once {
  readonly #busy = new Map<string, { purpose: string; outcome: Promise<unknown> }>()

  has(identity: string): boolean {
    return this.#busy.has(identity)
  }

  async run<T>(identity: string, purpose: string, work: () => Promise<T>): Promise<T> {
    const busy = this.#busy.get(identity)
    if (busy !== undefined) {
      if (busy.purpose !== purpose) throw new Fault('PAYMENT_ALREADY_USED')
      // The purpose names the kind of work and its request, so what is awaited is a T.
      return busy.outcome as Promise<T>
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
