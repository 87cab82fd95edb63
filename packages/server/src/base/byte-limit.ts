import { awaitWithin } from './await-within.ts'
import { Fault } from './fault.ts'
import { makeAbortedFault } from './semaphore.ts'
import type { World } from './world.ts'

type ByteLimitOptions = {
  readonly world: World
  /** Bytes that are held at once; one value that has more is held alone. */
  readonly bytesMax: number
  /** Longest wait for them. */
  readonly waitMs: number
}

/** The thing that bytes are held for. */
export type Holding = {
  /** The one among whose bytes they count: where many wait, the next is of the holder with the fewest. */
  readonly holder: string
  readonly bytes: number
  /** Aborted once nobody wants the outcome any more; it ends the wait, not the work. */
  readonly signal?: AbortSignal | undefined
}

type Waiter = Holding & { readonly start: (outcome: 'started') => void }

const retryAfterSeconds = 2

/**
 * Bounds the bytes of large values that are in memory at once. Work that holds some must ask for no more of the same
 * limit until it ends: those who hold all could wait for each other.
 */
export class ByteLimit {
  readonly #options: ByteLimitOptions
  readonly #held = new Map<string, number>()
  #total = 0
  /** In the order of arrival. */
  #waiting: readonly Waiter[] = []

  constructor(options: ByteLimitOptions) {
    this.#options = options
  }

  /** Bytes that are held, and the number of those who wait. */
  stats(): { readonly bytes: number; readonly waiting: number } {
    return { bytes: this.#total, waiting: this.#waiting.length }
  }

  /**
   * Holds so many bytes once they are free. The returned function frees them, and must be called; a second call does
   * nothing. Throws UNAVAILABLE where the wait is too long or aborted.
   */
  async hold({ holder, bytes, signal }: Holding): Promise<() => void> {
    const holding = { holder, bytes: Math.min(bytes, this.#options.bytesMax), signal }
    if (signal?.aborted === true) throw makeAbortedFault()
    if (this.#waiting.length === 0 && this.#isFree(holding)) this.#take(holding)
    else await this.#wait(holding)
    let isHeld = true
    return () => {
      if (isHeld) this.#leave(holding)
      isHeld = false
    }
  }

  async #wait(holding: Holding): Promise<void> {
    const { world, waitMs } = this.#options
    const { signal } = holding
    let abort: () => void = () => undefined
    let waiter: Waiter | undefined
    const end = new Promise<'started' | 'aborted'>((resolve) => {
      waiter = { ...holding, start: resolve }
      this.#waiting = [...this.#waiting, waiter]
      abort = () => resolve('aborted')
    })
    signal?.addEventListener('abort', abort, { once: true })
    const outcome = await awaitWithin(end, { world, ms: waitMs, otherwise: 'late' as const })
    signal?.removeEventListener('abort', abort)
    // Its turn may come at the very moment at which its time runs out or it is aborted.
    const hasStarted = waiter === undefined || !this.#waiting.includes(waiter)
    if (hasStarted && outcome !== 'aborted') return
    if (hasStarted) this.#leave(holding)
    else {
      this.#waiting = this.#waiting.filter((one) => one !== waiter)
      // Smaller ones may have waited behind it.
      this.#startNext()
    }
    throw outcome === 'aborted' ? makeAbortedFault() : makeBusyFault()
  }

  #isFree({ bytes }: Holding): boolean {
    return this.#total + bytes <= this.#options.bytesMax
  }

  #take({ holder, bytes }: Holding): void {
    this.#total += bytes
    this.#held.set(holder, (this.#held.get(holder) ?? 0) + bytes)
  }

  #leave({ holder, bytes }: Holding): void {
    this.#total -= bytes
    const left = (this.#held.get(holder) ?? 0) - bytes
    if (left > 0) this.#held.set(holder, left)
    else this.#held.delete(holder)
    this.#startNext()
  }

  /** Nobody is passed over because another one needs less: the large ones would never have their turn. */
  #startNext(): void {
    for (;;) {
      const [first, ...others] = this.#waiting
      if (first === undefined) return
      const countHeld = ({ holder }: Waiter) => this.#held.get(holder) ?? 0
      const next = others.reduce(
        (best, one) => (countHeld(one) < countHeld(best) ? one : best),
        first,
      )
      if (!this.#isFree(next)) return
      this.#waiting = this.#waiting.filter((one) => one !== next)
      this.#take(next)
      next.start('started')
    }
  }
}

function makeBusyFault(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'Too many large blocks are being read; try again shortly.',
    retryAfterSeconds,
  })
}
