import { Fault } from './fault.ts'

export type PlaceBounds = {
  readonly max: number
  readonly ofHolderMax: number
  /** Places that are kept for holders without any, so that a few cannot hold them all. */
  readonly forNew?: number
}

/** Says whether a holder may have one more place, where so many are held in all and by itself. */
export function hasPlace(
  { max, ofHolderMax, forNew = 0 }: PlaceBounds,
  held: { readonly total: number; readonly own: number },
): boolean {
  return held.own < ofHolderMax && held.total < (held.own === 0 ? max : max - forNew)
}

/**
 * Counts tasks that occupy something while they run, such as a transfer. A task past the limits is refused, not queued.
 */
export class ConcurrencyLimit {
  readonly #bounds: PlaceBounds
  readonly #held = new Map<string, number>()
  #total = 0

  constructor(bounds: PlaceBounds) {
    this.#bounds = bounds
  }

  /**
   * Occupies a place for a holder, or throws UNAVAILABLE. The returned function frees the place; a second call does
   * nothing.
   */
  occupy(holder: string): () => void {
    const own = this.#held.get(holder) ?? 0
    if (!hasPlace(this.#bounds, { total: this.#total, own }))
      throw new Fault('UNAVAILABLE', {
        message: 'Too many transfers of files are under way; try again shortly',
        retryAfterSeconds: 2,
      })
    this.#total += 1
    this.#held.set(holder, own + 1)
    let isFree = false
    return () => {
      if (isFree) return
      isFree = true
      this.#total -= 1
      const left = (this.#held.get(holder) ?? 1) - 1
      if (left === 0) this.#held.delete(holder)
      else this.#held.set(holder, left)
    }
  }
}
