import { dayMs } from '../base/durations.ts'
import type { World } from '../base/world.ts'
import { readCode } from './evm-chain.ts'
import { decodeHex, encodeHex, hashKeccak } from './hex.ts'
import { multicallAddress } from './joint.ts'
import type { Journaled } from './journal.ts'
import type { Rpc } from './rpc.ts'
import type { JournaledSender, PaymentLog } from './sender.ts'

/** The hashes of codes that are known to make each call whatever becomes of the others. */
const knownCodes: readonly string[] = [
  // Multicall3, as it is on public chains.
  '0xd5c15df687b16f2ff992fc8d767b4216323184a2bbc6ee2f9c398c318e770891',
  // contracts/Multicall3.sol, on the devnet.
  '0x1b4d2bfc57af7ee8448fe977bdf5ddeb0c6b8887b210e81e2f607e33de3f3130',
]

/** The time for which nothing is sent together after a joint transaction that did not make all it could. */
const pauseMs = dayMs

type Ports = {
  readonly rpc: Rpc
  readonly world: World
  readonly log: PaymentLog
  readonly sender: Pick<JournaledSender, 'findJointLoss'>
}

/**
 * Says of one network whether transfers may go together. Multicall3 gives each call all the gas that is left, so a call
 * that uses it up makes the whole transaction fail, or leaves too little for the next one. Only the code of a payer's
 * wallet can do that, and wallets with code go alone; but a wallet can get code before its block comes. So one such loss
 * ends all joint transactions for a day, also for the processes that follow: the journal tells them.
 */
export class Joints {
  readonly #ports: Ports
  #isThere: Promise<boolean> | undefined
  #pausedUntilMs = 0

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /** Returns true where transfers may go together now. Never throws. */
  async areAllowed(): Promise<boolean> {
    this.#isThere ??= this.#check()
    return (await this.#isThere) && this.#ports.world.now() >= this.#pausedUntilMs
  }

  /**
   * Ends joint transactions for a day after one that did not make all it could; each of its parts tells, also long
   * after.
   */
  pause({ id, createdAtMs }: Pick<Journaled, 'id' | 'createdAtMs'>): void {
    if (!this.#pauseAfter(Number(createdAtMs))) return
    const text = 'a joint transaction did not make what it could; transfers go alone for a day'
    this.#ports.log.warn({ id }, text)
  }

  /** Returns true where the pause is longer now. */
  #pauseAfter(createdAtMs: number): boolean {
    const untilMs = createdAtMs + pauseMs
    if (untilMs <= this.#pausedUntilMs) return false
    this.#pausedUntilMs = untilMs
    return true
  }

  async #check(): Promise<boolean> {
    const { rpc, world, log, sender } = this.#ports
    try {
      const code = await readCode(rpc, multicallAddress)
      const isKnown = knownCodes.includes(encodeHex(hashKeccak(decodeHex(code))))
      if (!isKnown) {
        const fields = { address: multicallAddress }
        log.info(fields, 'transfers go alone: Multicall3 is not on this network')
        return false
      }
      const lossMs = await sender.findJointLoss(world.now() - pauseMs)
      if (lossMs !== undefined) this.#pauseAfter(lossMs)
      return true
    } catch {
      // A node, or a database, that does not answer is asked again.
      this.#isThere = undefined
      return false
    }
  }
}
