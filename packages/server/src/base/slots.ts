import { Fault } from './fault.ts'
import { within } from './within.ts'
import type { World } from './world.ts'

export type SlotsOptions = {
  readonly world: World
  /** Pieces of work that run at once. */
  readonly atOnceMax: number
  /** Pieces of work that wait for a slot, and for how long. */
  readonly waitingMax: number
  readonly waitMs: number
}

/** Runs so many pieces of work at once; others wait in the order of arrival, and too many, or too long, are 503. */
export class Slots {
  readonly #options: SlotsOptions
  readonly #waiting: ((isMine: true) => void)[] = []
  #free: number

  constructor(options: SlotsOptions) {
    this.#options = options
    this.#free = options.atOnceMax
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.#take()
    try {
      return await work()
    } finally {
      this.#giveBack()
    }
  }

  async #take(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    const { world, waitingMax, waitMs } = this.#options
    if (this.#waiting.length >= waitingMax) throw busy()
    let grant: (isMine: true) => void = () => undefined
    const turn = new Promise<true>((resolve) => {
      grant = resolve
      this.#waiting.push(resolve)
    })
    if (await within(turn, { world, ms: waitMs, otherwise: false })) return
    const place = this.#waiting.indexOf(grant)
    // Not waiting any more: the slot was given in the very moment in which the time ran out.
    if (place < 0) return
    this.#waiting.splice(place, 1)
    throw busy()
  }

  #giveBack(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free += 1
    else next(true)
  }
}

function busy(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'Too many queries are running; try again shortly.',
    retryAfterSeconds: 2,
  })
}
