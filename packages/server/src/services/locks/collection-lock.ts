import { awaitWithin } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'

type Hold = { readonly ended: Promise<'ended'>; readonly waiting: (() => void)[] }

/** The longest wait for a collection; its holder needs milliseconds, unless the database is in trouble. */
const patienceMs = 20_000

/**
 * Collections that some work holds alone: what it reads stays true until its entries take their place in the log.
 * Other writes to them wait meanwhile, and go before the next such work; other collections are not affected.
 * UNAVAILABLE where the wait is too long.
 */
export class CollectionLock {
  readonly #world: World
  readonly #holds = new Map<string, Hold>()

  constructor(world: World) {
    this.#world = world
  }

  /** Appends now, or, where some work holds the collection, as soon as it has ended. */
  enter<T>(collection: string, append: () => Promise<T>): Promise<T> {
    const hold = this.#holds.get(collection)
    if (hold === undefined) return append()
    return new Promise((resolve, reject) => {
      let isLate = false
      const stop = this.#world.every(patienceMs, () => {
        isLate = true
        stop()
        reject(makeBusyFault())
      })
      hold.waiting.push(() => {
        stop()
        if (!isLate) append().then(resolve, reject)
      })
    })
  }

  /**
   * Runs the work while nobody else appends to the collections. All are taken at once, so waits cannot form a
   * circle.
   */
  async run<T>(collections: readonly string[], work: () => Promise<T>): Promise<T> {
    const limit = { world: this.#world, ms: patienceMs, otherwise: 'late' } as const
    for (
      let hold = this.#findHold(collections);
      hold !== undefined;
      hold = this.#findHold(collections)
    ) {
      if ((await awaitWithin(hold.ended, limit)) === 'late') throw makeBusyFault()
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

  #findHold(collections: readonly string[]): Hold | undefined {
    return collections.map((one) => this.#holds.get(one)).find((hold) => hold !== undefined)
  }
}

function makeBusyFault(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'The collection is being changed and cannot be written now; try again shortly.',
    retryAfterSeconds: 1,
  })
}
