import type { World } from '../base/world.ts'
import { filterConfirmed } from './confirmed.ts'
import { findTransactionReceipt, type TransactionReceipt } from './evm-chain.ts'
import type { Rpc } from './rpc.ts'

export type TransactionReceiptsOptions = {
  readonly rpc: Rpc
  readonly world: World
  /** The pause between two rounds of requests. */
  readonly pollMs: number
  /** The number of blocks that must hold or follow the transaction; 1 is its own. */
  readonly confirmations: number
}

type ReceiptWaiter = {
  readonly hashes: readonly string[]
  readonly deadlineMs: number
  /** A round that began after it came asks for its transactions, or has asked. */
  isAsked: boolean
  readonly resolve: (receipt: TransactionReceipt | undefined) => void
}

/** Waits for the receipts of transactions of our own, which are short; all that are awaited share one batch of requests per round. */
export class TransactionReceipts {
  readonly #options: TransactionReceiptsOptions
  readonly #wanted = new Map<string, ReceiptWaiter[]>()
  #polling = false

  constructor(options: TransactionReceiptsOptions) {
    this.#options = options
  }

  /**
   * Returns the receipt of the first one of these transactions that is confirmed; undefined after the time-out. Trouble
   * with the node does not end the wait.
   */
  wait(hashes: readonly string[], timeoutMs: number): Promise<TransactionReceipt | undefined> {
    const deadlineMs = this.#options.world.now() + timeoutMs
    return new Promise((resolve) => {
      const waiter = { hashes, deadlineMs, isAsked: false, resolve }
      for (const hash of hashes) this.#wanted.set(hash, [...(this.#wanted.get(hash) ?? []), waiter])
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
    for (const waiter of [...this.#wanted.values()].flat()) waiter.isAsked = true
    const hashes = [...this.#wanted.keys()]
    // A receipt that cannot be read is asked for again; the others do not wait for it.
    const find = (hash: string) => findTransactionReceipt(rpc, hash).catch(() => undefined)
    if (confirmations <= 1) {
      await Promise.all(hashes.map(async (hash) => this.#resolve(await find(hash))))
      return
    }
    const list = async () => (await Promise.all(hashes.map(find))).flatMap((found) => found ?? [])
    const listing = { list, onSilence: 'skip' } as const
    for (const receipt of await filterConfirmed(rpc, confirmations, listing)) this.#resolve(receipt)
  }

  /** Ends the waits whose time is over; those of others for the same transaction go on. */
  #expire(): void {
    const now = this.#options.world.now()
    // One that came while a round was under way is asked for in the next one, if it has no time to wait, too.
    for (const waiter of [...this.#wanted.values()].flat())
      if (waiter.isAsked && waiter.deadlineMs <= now) this.#end(waiter, undefined)
  }

  #resolve(receipt: TransactionReceipt | undefined): void {
    if (receipt === undefined) return
    for (const waiter of this.#wanted.get(receipt.hash) ?? []) this.#end(waiter, receipt)
  }

  #end(waiter: ReceiptWaiter, receipt: TransactionReceipt | undefined): void {
    for (const hash of waiter.hashes) this.#remove(hash, waiter)
    waiter.resolve(receipt)
  }

  #remove(hash: string, waiter: ReceiptWaiter): void {
    const rest = (this.#wanted.get(hash) ?? []).filter((one) => one !== waiter)
    if (rest.length === 0) this.#wanted.delete(hash)
    else this.#wanted.set(hash, rest)
  }
}
