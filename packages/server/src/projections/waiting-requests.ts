import { limits } from '@tollbase/contract/limits'
import { Fault } from '../base/fault.ts'

/** One caller's wait for something new in a collection. */
export type Watch = {
  /** Resolves once the tables show something that they did not show when the watch began. */
  readonly woken: Promise<void>
  readonly end: () => void
}

/** The requests that wait for new versions in the collections of one application. */
export class Watchers {
  readonly #waiting = new Map<string, Set<() => void>>()
  #count = 0

  get count(): number {
    return this.#count
  }

  /** The caller must end the watch, whatever happens. RATE_LIMITED where too many wait. */
  begin(collection: string): Watch {
    if (this.#count >= limits.changesWaitingMax) {
      throw new Fault('RATE_LIMITED', {
        message: `More than ${limits.changesWaitingMax} requests of this application wait for changes; ask without waiting, or a little later`,
        details: { limit: 'changes_waiting', retry_after_seconds: 1 },
        retryAfterSeconds: 1,
      })
    }
    const waiting = this.#waiting.get(collection) ?? new Set()
    this.#waiting.set(collection, waiting)
    this.#count += 1
    let wake: () => void = () => undefined
    const woken = new Promise<void>((resolve) => {
      wake = resolve
    })
    waiting.add(wake)
    const end = () => {
      if (!waiting.delete(wake)) return
      this.#count -= 1
      if (waiting.size === 0) this.#waiting.delete(collection)
    }
    return { woken, end }
  }

  /** Wakes the requests that wait for one of these collections. */
  wake(collections: Iterable<string>): void {
    for (const collection of collections)
      for (const wake of this.#waiting.get(collection) ?? []) wake()
  }

  wakeAll(): void {
    this.wake([...this.#waiting.keys()])
  }
}
