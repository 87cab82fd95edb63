import type { World } from '../base/world.ts'
import { readCode } from './evm-chain.ts'
import { decodeHex, encodeHex, hashKeccak } from './hex.ts'
import { multicallAddress } from './joint.ts'
import type { Journaled } from './journal.ts'
import type { Rpc } from './rpc.ts'
import type { PaymentLog } from './sender.ts'

/** The hashes of codes that are known to make each call whatever becomes of the others. */
const knownCodes: readonly string[] = [
  // Multicall3, as it is on public chains.
  '0xd5c15df687b16f2ff992fc8d767b4216323184a2bbc6ee2f9c398c318e770891',
  // contracts/Multicall3.sol, on the devnet.
  '0x1b4d2bfc57af7ee8448fe977bdf5ddeb0c6b8887b210e81e2f607e33de3f3130',
]

/** The time for which nothing is sent together after a joint transaction was reverted. */
const pauseMs = 86_400_000

/**
 * Says of one network whether transfers may go together. Multicall3 gives each call all the gas that is left, so a call
 * that uses it up makes the whole transaction fail. Only the code of a payer's wallet can do that, and wallets with code go
 * alone; but a wallet can get code before its block comes. So one such loss ends all joint transactions for a day.
 */
export class Joints {
  readonly #ports: { readonly rpc: Rpc; readonly world: World; readonly log: PaymentLog }
  #isThere: Promise<boolean> | undefined
  #pausedUntilMs = 0

  constructor(ports: { readonly rpc: Rpc; readonly world: World; readonly log: PaymentLog }) {
    this.#ports = ports
  }

  /** Returns true where transfers may go together now. Never throws. */
  async areAllowed(): Promise<boolean> {
    if (this.#ports.world.now() < this.#pausedUntilMs) return false
    this.#isThere ??= this.#check()
    return this.#isThere
  }

  /** Notes that a joint transaction was reverted as a whole; each of its parts tells, also long after. */
  noteReverted({ id, createdAtMs }: Pick<Journaled, 'id' | 'createdAtMs'>): void {
    const untilMs = Number(createdAtMs) + pauseMs
    if (untilMs <= this.#pausedUntilMs) return
    this.#pausedUntilMs = untilMs
    this.#ports.log.warn({ id }, 'a joint transaction was reverted; transfers go alone for a day')
  }

  async #check(): Promise<boolean> {
    try {
      const code = await readCode(this.#ports.rpc, multicallAddress)
      const isKnown = knownCodes.includes(encodeHex(hashKeccak(decodeHex(code))))
      if (!isKnown) {
        const fields = { address: multicallAddress }
        this.#ports.log.info(fields, 'transfers go alone: Multicall3 is not on this network')
      }
      return isKnown
    } catch {
      // A node that does not answer is asked again.
      this.#isThere = undefined
      return false
    }
  }
}
