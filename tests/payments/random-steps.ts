import type { Facilitator, Settlement } from '../../packages/server/src/x402/facilitator.ts'
import type { Chance } from '../simulation/chance.ts'

/** The transaction of another payment, which the facilitator told of before. */
export const otherHash = `0x${'e'.repeat(64)}`

/** The error of a process that is gone. */
export class Died extends Error {}

/** All steps of all processes to the outside: each waits until chance lets it happen. */
export class Steps {
  readonly #chance: Chance
  readonly trace: string[] = []
  #waiting: { readonly life: Life; readonly name: string; readonly go: () => void }[] = []
  #busy = 0

  constructor(chance: Chance) {
    this.#chance = chance
  }

  get isOver(): boolean {
    return this.#waiting.length === 0
  }

  async take<T>(life: Life, name: string, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((go) => this.#waiting.push({ life, name, go }))
    if (life.isDead) throw new Died()
    this.#busy += 1
    try {
      return await work()
    } finally {
      this.#busy -= 1
    }
  }

  /** Lets one step happen, and whatever follows from it at once. */
  async next(): Promise<void> {
    const quick = this.#waiting.filter(({ life }) => !life.isSlow)
    const isSlowOnes = quick.length === 0 || this.#chance.happens('a slow one works', 30)
    const step = this.#chance.pick('next', isSlowOnes ? this.#waiting : quick)
    this.#waiting = this.#waiting.filter((one) => one !== step)
    this.trace.push(`${step.life.name} ${step.name}`)
    step.go()
    await this.rest()
  }

  async rest(): Promise<void> {
    // Those that are gathered into one statement wait for a turn of their own.
    do for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
    while (this.#busy > 0)
  }
}

/** A slow process stands still while others work, so that it hears late what it asked. */
export type Life = { readonly name: string; readonly isSlow: boolean; isDead: boolean }

/** The truth about a payment outside, whatever anybody is told. */
export class Outside {
  readonly #chance: Chance
  readonly hash: string
  isMoved = false
  isOver = false
  isRough = true

  constructor(chance: Chance) {
    this.#chance = chance
    this.hash = `0x${chance.bytes('hash', 32).toString('hex')}`
  }

  move(): void {
    if (!this.isOver) this.isMoved = true
  }

  facilitator(step: <T>(name: string, work: () => Promise<T>) => Promise<T>): Facilitator {
    const look = () => step('look', async () => this.#tell(false))
    return {
      verify: () =>
        step('verify', async () => {
          if (this.isMoved) return { ok: false, reason: 'authorization_used' }
          if (this.isOver) return { ok: false, reason: 'expired' }
          if (this.#happens('refuses', 60)) return { ok: false, reason: 'insufficient_balance' }
          return { ok: true }
        }),
      isUsed: () => step('use', async () => this.isMoved),
      findUse: look,
      lookup: look,
      settle: async () => {
        // It is told when its answer arrives, which may be long after it was decided.
        const outcome = await step('settle', async () => {
          if (!this.#happens('sends nothing', 300)) this.move()
          return this.#tell(true)
        })
        return step('hear', async () => outcome)
      },
    }
  }

  #tell(isSettling: boolean): Settlement {
    if (this.#happens('says nothing', 150)) return { state: 'pending', reason: 'silent' }
    if (this.#happens('lies', 30)) return { state: 'settled', transaction: otherHash }
    if (this.isMoved && this.#happens('is brief', 300))
      return { state: 'settled', transaction: this.hash }
    if (this.isMoved) return { state: 'settled', transaction: this.hash, blockNumber: 1n }
    if (this.isOver) return { state: 'failed', reason: 'expired', final: true }
    if (isSettling && this.#happens('is busy', 300))
      return { state: 'pending', reason: 'busy', isUnsent: true }
    return { state: 'failed', reason: 'not_sent', final: false }
  }

  #happens(what: string, perMille: number): boolean {
    return this.isRough && this.#chance.happens(what, perMille)
  }
}
