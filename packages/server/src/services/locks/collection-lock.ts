import { within } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'

type Hold = { readonly ended: Promise<'ended'>; readonly waiting: (() => void)[] }

/** How long anybody waits for a collection; who has it needs milliseconds, unless the database is in trouble. */
const patienceMs = 20_000

/**
 * Collections that some work has to itself: what it reads is still so when its entries take their place in the log.
 * Writes of others to them wait meanwhile, and go before the next such work; other collections notice nothing.
 * UNAVAILABLE where it takes too long.
 */
export class Exclusion {
  readonly #world: World
  readonly #holds = new Map<string, Hold>()

  constructor(world: World) {
    this.#world = world
  }

  /** Appends now, or, where somebody has the collection to himself, as soon as he has ended. */
  enter<T>(collection: string, append: () => Promise<T>): Promise<T> {
    const hold = this.#holds.get(collection)
    if (hold === undefined) return append()
    return new Promise((resolve, reject) => {
      let isLate = false
      const stop = this.#world.every(patienceMs, () => {
        isLate = true
        stop()
        reject(busy())
      })
      hold.waiting.push(() => {
        stop()
        if (!isLate) append().then(resolve, reject)
      })
    })
  }

  /** Does the work while nobody else appends to the collections. All are taken at once, so nobody waits in a circle. */
  async run<T>(collections: readonly string[], work: () => Promise<T>): Promise<T> {
    const limit = { world: this.#world, ms: patienceMs, otherwise: 'late' } as const
    for (let hold = this.#first(collections); hold !== undefined; hold = this.#first(collections)) {
      if ((await within(hold.ended, limit)) === 'late') throw busy()
    }
    let end: () => void = () => undefined
    const ended = new Promise<'ended'>((resolve) => {
      end = () => resolve('ended')
    })
    const hold: Hold = { ended, waiting: [] }
    for (const collection of collections) this.#holds.set(collection, hold)
    try {
      return await work()
    } finally {
      for (const collection of collections) this.#holds.delete(collection)
      for (const enter of hold.waiting) enter()
      end()
    }
  }

  #first(collections: readonly string[]): Hold | undefined {
    return collections.map((one) => this.#holds.get(one)).find((hold) => hold !== undefined)
  }
}

function busy(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'The collection is being changed and cannot be written now; try again shortly.',
    retryAfterSeconds: 1,
  })
}
