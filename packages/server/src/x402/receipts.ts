import type { World } from '../base/world.ts'
import { headOf, type Receipt, receiptOf } from './evm-chain.ts'
import type { Rpc } from './rpc.ts'

export type ReceiptsOptions = {
  readonly rpc: Rpc
  readonly world: World
  /** Pause between two rounds of questions. */
  readonly pollMs: number
  /** Blocks that must hold or follow the transaction; 1 is its own. */
  readonly confirmations: number
}

type Wanted = {
  readonly deadlineMs: number
  readonly resolve: (receipt: Receipt | undefined) => void
}

/** Waits for receipts, all under way in one batch of questions per round. */
export class Receipts {
  readonly #options: ReceiptsOptions
  readonly #wanted = new Map<string, Wanted[]>()
  #polling = false

  constructor(options: ReceiptsOptions) {
    this.#options = options
  }

  /** The receipt once it is confirmed; undefined after the time-out. Trouble with the node is waited out. */
  wait(hash: string, timeoutMs: number): Promise<Receipt | undefined> {
    const deadlineMs = this.#options.world.now() + timeoutMs
    return new Promise((resolve) => {
      const others = this.#wanted.get(hash) ?? []
      this.#wanted.set(hash, [...others, { deadlineMs, resolve }])
      if (!this.#polling) {
        this.#polling = true
        void this.#poll()
      }
    })
  }

  async #poll(): Promise<void> {
    while (this.#wanted.size > 0) {
      await this.#round().catch(() => undefined)
      this.#expire()
      // A chain that mines at once has the next receipts ready after a turn of the event loop.
      if (this.#wanted.size > 0) await this.#options.world.sleep(this.#options.pollMs)
    }
    this.#polling = false
  }

  async #round(): Promise<void> {
    const { rpc, confirmations } = this.#options
    const hashes = [...this.#wanted.keys()]
    const [head, receipts] = await Promise.all([
      confirmations > 1 ? headOf(rpc) : undefined,
      // One that cannot be read is asked for again; the others do not wait for it.
      Promise.all(hashes.map((hash) => receiptOf(rpc, hash).catch(() => undefined))),
    ])
    for (const receipt of receipts) {
      if (receipt === undefined) continue
      const buried = (head ?? receipt.blockNumber) - receipt.blockNumber + 1n
      if (buried >= BigInt(confirmations)) this.#resolve(receipt.hash, receipt)
    }
  }

  #expire(): void {
    const now = this.#options.world.now()
    for (const [hash, list] of this.#wanted) {
      if (list.every((wanted) => wanted.deadlineMs <= now)) this.#resolve(hash, undefined)
    }
  }

  #resolve(hash: string, receipt: Receipt | undefined): void {
    const list = this.#wanted.get(hash) ?? []
    this.#wanted.delete(hash)
    for (const wanted of list) wanted.resolve(receipt)
  }
}
