import { LRUCache } from 'lru-cache'
import { awaitWithin } from './await-within.ts'
import { Fault } from './fault.ts'
import type { World } from './world.ts'

/** The kind of request that the work serves: one that has paid, one with a key, or one with neither. */
export type Rank = 'paid' | 'key' | 'visitor'

/** The party that a task runs for. */
export type Turn = {
  /** The application that the task counts to. */
  readonly application: string
  /** The caller, within the application. */
  readonly caller: string
  readonly rank: Rank
  /**
   * Returns a signal that is aborted once nobody wants the outcome any more. It is made for those who ask, as it costs
   * more than all else of a short read.
   */
  readonly getSignal?: (() => AbortSignal) | undefined
}

export type SemaphoreOptions = {
  readonly world: World
  /** Tasks that run at once. */
  readonly atOnceMax: number
  /** Tasks of one application that run at once; all but one if it is not given, which leaves one for the others. */
  readonly ofApplicationMax?: number
  /** Tasks of one rank that may wait: in all, of one application, of one caller. */
  readonly waitingMax: number
  readonly waitingOfApplicationMax: number
  readonly waitingOfCallerMax: number
  /** Longest wait for a slot. */
  readonly waitMs: number
}

type Waiter = { readonly turn: Turn; readonly start: (outcome: 'started') => void }

/** Applications and callers whose last turn is remembered. */
const rememberedMax = 1_000

/**
 * Runs a bounded number of tasks at once. Tasks may take long and are never interrupted for others, so no group may
 * hold all slots: one stays free for payers, one for non-payers, one for keys among these, and one for other
 * applications, unless `ofApplicationMax` says otherwise. Callers without a key get at most half of the slots, and one
 * application gets at most half of those for free work. The next slot goes to the application with the fewest slots; on
 * a tie, to the one whose last turn is longest ago. Callers within an application are ordered the same way.
 */
export class Semaphore {
  readonly #options: SemaphoreOptions
  readonly #running = new Set<Turn>()
  /** In the order of arrival. */
  #waiting: readonly Waiter[] = []
  readonly #lastTurns = new LRUCache<string, number>({ max: rememberedMax })
  #turns = 0

  constructor(options: SemaphoreOptions) {
    this.#options = options
  }

  /**
   * Runs the work when its turn comes. Faults: RATE_LIMITED where too much waits for this caller or application;
   * UNAVAILABLE where too much waits in all, the wait is too long, or the signal is aborted.
   */
  async run<T>(turn: Turn, work: () => Promise<T>): Promise<T> {
    // Each call needs an object of its own: callers may reuse theirs.
    const own = { ...turn }
    await this.#take(own)
    try {
      return await work()
    } finally {
      this.#leave(own)
    }
  }

  /**
   * Throws the fault of `run` if too many tasks wait already, so that nobody pays for a turn that they would not get.
   */
  refuseFull(turn: Turn): void {
    if (this.#mayStart(turn)) return
    const { waitingMax, waitingOfApplicationMax, waitingOfCallerMax } = this.#options
    const equals = this.#waiting.filter((one) => one.turn.rank === turn.rank)
    const ofApplication = equals.filter((one) => one.turn.application === turn.application)
    const ofCaller = ofApplication.filter((one) => one.turn.caller === turn.caller)
    if (ofCaller.length >= waitingOfCallerMax) throw tooMany('caller')
    if (ofApplication.length >= waitingOfApplicationMax) throw tooMany('application')
    if (equals.length >= waitingMax) throw busy()
  }

  /** Numbers of tasks that run and that wait. */
  stats(): { readonly running: number; readonly waiting: number } {
    return { running: this.#running.size, waiting: this.#waiting.length }
  }

  async #take(turn: Turn): Promise<void> {
    const signal = turn.getSignal?.()
    if (signal?.aborted === true) throw makeAbortedFault()
    if (this.#mayStart(turn)) return this.#start(turn)
    this.refuseFull(turn)
    const { world, waitMs } = this.#options
    let leave: () => void = () => undefined
    const end = new Promise<'started' | 'left'>((resolve) => {
      this.#waiting = [...this.#waiting, { turn, start: resolve }]
      leave = () => resolve('left')
    })
    signal?.addEventListener('abort', leave, { once: true })
    const outcome = await awaitWithin(end, { world, ms: waitMs, otherwise: 'late' as const })
    signal?.removeEventListener('abort', leave)
    // Its turn may come at the very moment at which its time runs out or it is aborted.
    const isStarted = this.#running.has(turn)
    if (isStarted && outcome !== 'left') return
    if (isStarted) this.#leave(turn)
    this.#waiting = this.#waiting.filter((one) => one.turn !== turn)
    throw outcome === 'left' ? makeAbortedFault() : busy()
  }

  #leave(turn: Turn): void {
    this.#running.delete(turn)
    this.#startNext()
  }

  #mayStart({ application, rank }: Turn): boolean {
    const { atOnceMax } = this.#options
    const butOne = Math.max(1, atOnceMax - 1)
    const ofApplicationMax = this.#options.ofApplicationMax ?? butOne
    const half = Math.max(1, Math.floor(atOnceMax / 2))
    const quarter = Math.max(1, Math.floor(atOnceMax / 4))
    const running = [...this.#running]
    const own = running.filter((turn) => turn.application === application)
    if (running.length >= atOnceMax || own.length >= ofApplicationMax) return false
    if (rank === 'paid') return running.filter(hasPaid).length < butOne
    const [free, ownFree] = [running.filter(isFree), own.filter(isFree)]
    if (free.length >= butOne || ownFree.length >= half) return false
    if (rank === 'key') return true
    return free.filter(isVisitor).length < half && ownFree.filter(isVisitor).length < quarter
  }

  #start(turn: Turn): void {
    this.#running.add(turn)
    this.#turns += 1
    for (const name of [turn.application, makeCallerKey(turn)])
      this.#lastTurns.set(name, this.#turns)
  }

  #startNext(): void {
    for (;;) {
      const ready = this.#waiting.filter(({ turn }) => this.#mayStart(turn))
      const [first, ...others] = ready
      if (first === undefined) return
      const next = others.reduce((best, one) => (this.#isBefore(one, best) ? one : best), first)
      this.#waiting = this.#waiting.filter((one) => one !== next)
      this.#start(next.turn)
      next.start('started')
    }
  }

  /** True where the first of two has the next turn; the other one came before it. */
  #isBefore({ turn: one }: Waiter, { turn: other }: Waiter): boolean {
    const [places, others] = [this.#computePriority(one), this.#computePriority(other)]
    const at = places.findIndex((place, n) => place !== others[n])
    return at >= 0 && (places[at] ?? 0) < (others[at] ?? 0)
  }

  /** The sort key that decides whose turn it is, most important first; the least is next. */
  #computePriority(turn: Turn): readonly number[] {
    const own = [...this.#running].filter(({ application }) => application === turn.application)
    const callers = own.filter(({ caller }) => caller === turn.caller)
    const getLastTurn = (name: string) => this.#lastTurns.peek(name) ?? 0
    return [
      own.length,
      getLastTurn(turn.application),
      callers.length,
      getLastTurn(makeCallerKey(turn)),
    ]
  }
}

function makeCallerKey({ application, caller }: Turn): string {
  return `${application} ${caller}`
}

function hasPaid({ rank }: Turn): boolean {
  return rank === 'paid'
}

function isFree({ rank }: Turn): boolean {
  return rank !== 'paid'
}

function isVisitor({ rank }: Turn): boolean {
  return rank === 'visitor'
}

const retryAfterSeconds = 2

function busy(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'Too many queries are running; try again shortly.',
    retryAfterSeconds,
  })
}

function tooMany(whose: 'caller' | 'application'): Fault {
  const who = whose === 'caller' ? 'you' : 'this application'
  return new Fault('RATE_LIMITED', {
    message: `Too many queries of ${who} are waiting already; wait ${retryAfterSeconds} s and try again`,
    details: { limit: `queries_of_${whose}`, retry_after_seconds: retryAfterSeconds },
    retryAfterSeconds,
  })
}

/** Makes the fault for work whose client is gone; nobody reads it. */
export function makeAbortedFault(): Fault {
  return new Fault('UNAVAILABLE', {
    internal: 'the client closed the connection before the answer',
    retryAfterSeconds,
  })
}
