/** The events of about so long count. */
const memoryMs = 2_000

/** How often something happened lately. */
export class Pace {
  #count = 0
  /** When the count was right. */
  #at = 0

  note(now: number): void {
    this.#count = this.#left(now) + 1
    this.#at = now
  }

  /** `now` in milliseconds, as in `note`. */
  perSecond(now: number): number {
    return (this.#left(now) * 1000) / memoryMs
  }

  #left(now: number): number {
    return this.#count * Math.exp((this.#at - now) / memoryMs)
  }
}
