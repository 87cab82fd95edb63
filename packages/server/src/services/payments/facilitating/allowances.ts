import { limits } from '@tollbase/contract/limits'
import { dayMs } from '../../../base/durations.ts'
import type { World } from '../../../base/world.ts'

const callersMax = 10_000

/** `failures` has the settlements for which our gas was spent in vain. */
type Used = { settlements: number; readonly failures: Set<string> }
type Bounds = { readonly settlementsPerDay: number; readonly allSettlementsPerDay: number }

/**
 * Limits the gas that we pay for other servers in a UTC day: for each caller, and for all callers together.
 */
export class Allowances {
  readonly #bounds: Bounds
  readonly #world: World
  #day = 0
  #all = 0
  #callers = new Map<string, Used>()

  constructor(bounds: Bounds, world: World) {
    this.#bounds = bounds
    this.#world = world
  }

  /** Takes a settlement of the caller's allowance, or says why there is none. */
  take(caller: string): string | undefined {
    const used = this.#find(caller)
    if (used.failures.size >= limits.facilitatedFailuresMax) return 'caller_failed_too_often'
    if (used.settlements >= this.#bounds.settlementsPerDay) return 'caller_limit_reached'
    if (this.#all >= this.#bounds.allSettlementsPerDay) return 'facilitator_limit_reached'
    used.settlements += 1
    this.#all += 1
    return undefined
  }

  /** Notes that a settlement cost gas in vain, once for each, however often it is asked for. */
  noteFailure(caller: string, id: string): void {
    this.#find(caller).failures.add(id)
  }

  /** Gives a settlement back for which nothing was sent: it cost nothing, and anybody can hand such payments to a server. */
  giveBack(caller: string): void {
    const used = this.#find(caller)
    used.settlements = Math.max(0, used.settlements - 1)
    this.#all = Math.max(0, this.#all - 1)
  }

  hasFailed(caller: string, id: string): boolean {
    return this.#find(caller).failures.has(id)
  }

  #find(caller: string): Used {
    const day = Math.floor(this.#world.now() / dayMs)
    if (day !== this.#day) {
      this.#day = day
      this.#all = 0
      this.#callers = new Map()
    }
    const used = this.#callers.get(caller) ?? { settlements: 0, failures: new Set<string>() }
    this.#callers.set(caller, used)
    // The bound of all callers holds for those that are forgotten.
    const [oldest] = this.#callers.keys()
    if (this.#callers.size > callersMax && oldest !== undefined) this.#callers.delete(oldest)
    return used
  }
}
