import { limits } from '@tollbase/contract/limits'
import { dayMs } from '../../../base/durations.ts'
import type { World } from '../../../base/world.ts'

const callersMax = 10_000

type Used = {
  settlements: number
  settled: number
  /** The settlements that are under way, and those for which our gas was spent in vain, by their payers. */
  readonly payers: Map<string, Set<string>>
  /** Those of whom one was in vain. */
  readonly failed: Set<string>
}
type Bounds = { readonly settlementsPerDay: number; readonly allSettlementsPerDay: number }

/** A settlement that is taken of a day once its turn has come. */
export type Taken = {
  readonly caller: string
  readonly payer: string
  readonly id: string
  readonly day: number
  /** It was taken of this day before, and was in vain, or has been forgotten. */
  readonly isAgain: boolean
}

/**
 * Limits the gas that we pay for other servers in a UTC day: for each caller, and for all callers together. A payment
 * in vain is one of these, and no more: a caller can have as much spent by payments between wallets of its own, and a
 * stranger's wallets must not shut it out.
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

  /** Notes a settlement that may have to wait for its turn, or says why its caller can have none. */
  begin(wanted: Pick<Taken, 'caller' | 'payer' | 'id'>): Taken | string {
    return this.#findRefusal(wanted.caller) ?? this.#note(wanted)
  }

  /**
   * Takes it of its caller's allowance, or says why there is none. Those that only wait take nothing: a wallet can have
   * as many wait as it signs.
   */
  take(begun: Taken): Taken | string {
    const refusal = this.#findRefusal(begun.caller)
    if (refusal !== undefined) return refusal
    this.#find(begun.caller).settlements += 1
    this.#all += 1
    return begun.day === this.#day ? begun : this.#note(begun)
  }

  /**
   * Returns true where a payment of this payer was in vain, or so many payers had some, or may have yet, that each further
   * one should have few under way. The more the caller settles, the more are usual.
   */
  isDoubted({ caller, payer }: Pick<Taken, 'caller' | 'payer'>): boolean {
    const { payers, failed, settled } = this.#find(caller)
    return failed.has(payer) || payers.size > limits.facilitatedFailedPayersMax + settled / 10
  }

  /** Notes the end of a settlement. waited: it was not taken; unsent: it was, and nothing was sent. */
  end(
    { caller, payer, id, day, isAgain }: Taken,
    how: 'waited' | 'unsent' | 'made' | 'in vain',
  ): void {
    const used = this.#find(caller)
    if (day !== this.#day) return
    if (how === 'made') used.settled += 1
    if (how === 'in vain') used.failed.add(payer)
    // It cost nothing, and anybody can hand such payments to a server.
    if (how === 'unsent' || (how === 'in vain' && isAgain)) {
      used.settlements = Math.max(0, used.settlements - 1)
      this.#all = Math.max(0, this.#all - 1)
    }
    if (how === 'in vain' || (how !== 'made' && isAgain)) return
    const ids = used.payers.get(payer)
    ids?.delete(id)
    if (ids?.size === 0) used.payers.delete(payer)
  }

  #note({ caller, payer, id }: Pick<Taken, 'caller' | 'payer' | 'id'>): Taken {
    const { payers } = this.#find(caller)
    const ids = payers.get(payer) ?? new Set()
    const isAgain = ids.has(id)
    payers.set(payer, ids.add(id))
    return { caller, payer, id, day: this.#day, isAgain }
  }

  #findRefusal(caller: string): string | undefined {
    const used = this.#find(caller)
    if (used.settlements >= this.#bounds.settlementsPerDay) return 'caller_limit_reached'
    return this.#all >= this.#bounds.allSettlementsPerDay ? 'facilitator_limit_reached' : undefined
  }

  #find(caller: string): Used {
    const day = Math.floor(this.#world.now() / dayMs)
    if (day !== this.#day) {
      this.#day = day
      this.#all = 0
      this.#callers = new Map()
    }
    const used = this.#callers.get(caller) ?? {
      ...{ settlements: 0, settled: 0, payers: new Map(), failed: new Set() },
    }
    this.#callers.set(caller, used)
    // The bound of all callers holds for those that are forgotten.
    const [oldest] = this.#callers.keys()
    if (this.#callers.size > callersMax && oldest !== undefined) this.#callers.delete(oldest)
    return used
  }
}
