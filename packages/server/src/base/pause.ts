/**
 * A time in which something rests. A clock that is set back ends it, as otherwise it would last as long as the step
 * besides.
 */
export class Pause {
  #sinceMs = Number.NEGATIVE_INFINITY
  #ms = 0

  /** Begins anew at this time of the world's clock. */
  begin(nowMs: number, ms: number): void {
    this.#sinceMs = nowMs
    this.#ms = ms
  }

  /** Over where it never began. */
  isOver(nowMs: number): boolean {
    return nowMs < this.#sinceMs || nowMs >= this.#sinceMs + this.#ms
  }
}
