import type { Chance } from './chance.ts'
import type { FaultProfile } from './life.ts'
import type { Scheduler } from './scheduler.ts'
import type { Transfer } from './token-forms.ts'

/** The money that an operator leaves at the service's address, to pay out what came in elsewhere. */
const reserves = [0n, 10n ** 12n]

/**
 * The token's view of transfers out of the service's own address: it holds what came in without what went out, and
 * some recipients are on the token's list of those who get nothing, for a while or for good.
 */
export class Treasury {
  readonly #address: string
  readonly #scheduler: Scheduler
  readonly #chance: Chance
  readonly #faultProfile: FaultProfile
  /** The money that the operator left. */
  readonly reserve: bigint
  /** Until when a recipient gets nothing, in milliseconds since 1970. */
  readonly #refusedUntil = new Map<string, number>()

  constructor(
    address: string,
    parts: { scheduler: Scheduler; chance: Chance; faultProfile: FaultProfile },
  ) {
    this.#address = address
    this.#scheduler = parts.scheduler
    this.#chance = parts.chance
    this.#faultProfile = parts.faultProfile
    this.reserve = parts.chance.pick('reserve', reserves)
  }

  /** Computes what the address has after these transfers, and what the channel contract has sent there. */
  computeFunds(moved: readonly Transfer[], settled: bigint): bigint {
    return moved.reduce((sum, { from, to, value }) => {
      if (from === this.#address) return sum - value
      return to === this.#address ? sum + value : sum
    }, this.reserve + settled)
  }

  /** Returns whether the token would refuse the transfer while the address has no more than this. */
  refuses({ from, to, value }: Transfer, funds: () => bigint): boolean {
    if (from !== this.#address) return false
    return this.#isRefused(to) || funds() < value
  }

  /** Puts a recipient on the token's list, perhaps for good. */
  refuse(recipient: string): void {
    this.#refusedUntil.set(recipient, this.#drawEnd())
  }

  #isRefused(recipient: string): boolean {
    let until = this.#refusedUntil.get(recipient)
    if (until === undefined) {
      until = this.#drawRefusal()
      this.#refusedUntil.set(recipient, until)
    }
    return this.#scheduler.now < until
  }

  #drawRefusal(): number {
    const chance = this.#chance
    if (!chance.happens('recipient is refused', this.#faultProfile.outside * 2)) return 0
    return this.#drawEnd()
  }

  #drawEnd(): number {
    const chance = this.#chance
    if (chance.happens('recipient is refused for good', 300)) return Number.POSITIVE_INFINITY
    return this.#scheduler.now + chance.between('recipient is refused for', 5_000, 90_000)
  }
}
