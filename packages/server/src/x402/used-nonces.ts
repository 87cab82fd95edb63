import { readFinalHeight, readHead } from './evm-chain.ts'
import type { Rpc } from './rpc.ts'

/** Watches the nonces of our keys that transactions took which the journal does not know. */
export class UsedNonces {
  readonly #rpc: Rpc
  /** By the id of our transaction, the height of the chain when its nonce was first seen used by another one. */
  #since = new Map<string, bigint>()

  constructor(rpc: Rpc) {
    this.#rpc = rpc
  }

  /**
   * Finds, of transactions whose nonce is used and that are in no block, those that no block can have any more: the one
   * that took the nonce is final. Until then a reorganisation may free the nonce, or bring ours; it may also have come
   * between the count and the receipts. One look alone decides nothing: where blocks are final at once, a node behind the
   * one that counted would have no receipt of ours yet.
   */
  async findReplaced<T extends { readonly id: string }>(used: readonly T[]): Promise<readonly T[]> {
    const before = this.#since
    this.#since = new Map()
    if (used.length === 0) return []
    const head = await readHead(this.#rpc)
    const final = await readFinalHeight(this.#rpc, head)
    for (const { id } of used) this.#since.set(id, before.get(id) ?? head)
    return used.filter(({ id }) => {
      const since = before.get(id)
      return since !== undefined && since <= final
    })
  }
}
