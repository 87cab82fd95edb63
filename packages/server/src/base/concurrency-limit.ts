import { Fault } from './fault.ts'
import { type PlaceBounds, SharedRoom } from './shared-room.ts'

/**
 * Counts tasks that occupy something while they run, such as a transfer. A task past the limits is refused, not queued.
 */
export class ConcurrencyLimit {
  readonly #room: SharedRoom

  constructor(bounds: PlaceBounds) {
    this.#room = new SharedRoom(bounds)
  }

  /**
   * Occupies a place for a holder, or throws UNAVAILABLE. The returned function frees the place; a second call does
   * nothing.
   */
  occupy(holder: string): () => void {
    const place = this.#room.open(holder)
    if (!place.set(1))
      throw new Fault('UNAVAILABLE', {
        message: 'Too many transfers of files are under way; try again shortly',
        retryAfterSeconds: 2,
      })
    return () => {
      place.set(0)
    }
  }
}
