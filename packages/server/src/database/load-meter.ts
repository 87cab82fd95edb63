/** Reads of about so long count. */
const memoryMs = 2_000
const manyPerSecond = 10
/** Where there are more, a long read leaves some of them anyway. */
const fewProcessors = 4

/** Tells whether quick reads come in so often, and processors are so few, that a long read should take but one of these. */
export class Crowd {
  readonly #processors: number
  #count = 0
  /** When the count was right. */
  #at = 0

  constructor(processors: number) {
    this.#processors = processors
  }

  /** A quick read; `now` in milliseconds. */
  note(now: number): void {
    this.#count = this.#left(now) + 1
    this.#at = now
  }

  isThere(now: number): boolean {
    const perSecond = (this.#left(now) * 1000) / memoryMs
    return perSecond >= manyPerSecond && this.#processors <= fewProcessors
  }

  #left(now: number): number {
    return this.#count * Math.exp((this.#at - now) / memoryMs)
  }
}
