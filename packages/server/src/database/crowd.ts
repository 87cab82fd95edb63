/** Reads of about so long count. */
const memoryMs = 2_000
const manyPerSecond = 10

/** Tells whether quick reads come in so often that a long read should leave the processors to them. */
export class Crowd {
  #count = 0
  /** When the count was right. */
  #at = 0

  /** A quick read; `now` in milliseconds. */
  note(now: number): void {
    this.#count = this.#left(now) + 1
    this.#at = now
  }

  isThere(now: number): boolean {
    return (this.#left(now) * 1000) / memoryMs >= manyPerSecond
  }

  #left(now: number): number {
    return this.#count * Math.exp((this.#at - now) / memoryMs)
  }
}
