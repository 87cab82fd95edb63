import { dayMs } from '../base/durations.ts'
import { Pause } from '../base/pause.ts'

/** The pause after the second refusal in a row, which doubles up to the longest one; who sends pauses after each. */
const pauseMsMin = 60_000
const pauseMsMax = 15 * 60_000
/** Rejections that are believed in a day (UTC). */
const believedMax = 8

/**
 * Counts how often a node refuses. A refused blob is given to the node again, and is not counted as sent: so a node that
 * refuses in words and sends all the same would be paid for it as often as somebody asks.
 */
export class Refusals {
  readonly #rest = new Pause()
  #problem = ''
  #inARow = 0
  #day = 0
  #believed = 0

  /** Returns the node's last words while it is not to be asked; undefined where it is. */
  check(nowMs: number): string | undefined {
    return this.#rest.isOver(nowMs) ? undefined : this.#problem
  }

  /** Notes a refusal, and begins the pause after it. */
  note(nowMs: number, problem: string): void {
    this.#problem = problem
    this.#inARow += 1
    if (this.#inARow > 1)
      this.#rest.begin(nowMs, Math.min(pauseMsMax, pauseMsMin * 2 ** (this.#inARow - 2)))
  }

  /** Ends the pauses: the node has taken something. */
  end(): void {
    this.#inARow = 0
  }

  /** Returns true where one more rejection of this day is believed, and counts it. */
  takeBelief(nowMs: number): boolean {
    const day = Math.floor(nowMs / dayMs)
    if (day !== this.#day) this.#believed = 0
    this.#day = day
    this.#believed += 1
    return this.#believed <= believedMax
  }
}
