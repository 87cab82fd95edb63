import { chooseSmaller } from '../base/bigint.ts'
import type { World } from '../base/world.ts'
import {
  findTransactionReceipt,
  readFinalHeight,
  readHead,
  readTransactionCount,
} from './evm-chain.ts'
import type { Rpc } from './rpc.ts'
import { TwoLooks } from './two-looks.ts'

/** A transaction of our keys, as it was just looked for. */
export type LookedFor = {
  readonly id: string
  /** Those under which a block may have it. */
  readonly hashes: readonly string[]
  /** Its nonce; undefined where that may stay free for ever, as nobody has its key. */
  readonly place: { readonly signer: string; readonly nonce: bigint } | undefined
  /** Its nonce is used, and no block has it. */
  readonly isMissing: boolean
}

/** Watches the nonces of our keys that transactions took which the journal does not know. */
export class UsedNonces {
  readonly #rpc: Rpc
  readonly #looks: TwoLooks

  constructor(rpc: Rpc, world: Pick<World, 'now'>) {
    this.#rpc = rpc
    this.#looks = new TwoLooks(world)
  }

  /**
   * Finds, among transactions whose nonce is used and that are in no block, the ids of those that no block can have any
   * more: the one that took the nonce is final. Until then a reorganisation may free the nonce, or bring ours; and the
   * node without the receipt may be behind the one that counted. So each is asked for anew, by calls of one batch, which
   * one node answers; and two such looks must agree.
   */
  async findReplaced(looked: readonly LookedFor[]): Promise<ReadonlySet<string>> {
    // Only what this look was about: those of other kinds are looked at by other calls.
    for (const { id, isMissing } of looked) if (!isMissing) this.#looks.forget(id)
    const found = new Map<string, bigint>()
    for (const one of looked) {
      const head = one.isMissing ? await this.#findHeadWithout(one) : undefined
      if (head !== undefined) found.set(one.id, head)
    }
    if (found.size === 0) return new Set()
    const final = await readFinalHeight(this.#rpc, [...found.values()].reduce(chooseSmaller))
    const replaced = [...found].filter(([id, head]) => this.#looks.agree(id, { head, final }))
    return new Set(replaced.map(([id]) => id))
  }

  /** Finds the newest block of a node that counts the nonce as used, and has no receipt; undefined where none is so. */
  async #findHeadWithout({ id, hashes, place }: LookedFor): Promise<bigint | undefined> {
    // Around the receipts: a batch may be cut in two, and one node answers each part.
    const [before, receipts, after] = await Promise.all([
      this.#readPlace(place),
      Promise.all(hashes.map((hash) => findTransactionReceipt(this.#rpc, hash))),
      this.#readPlace(place),
    ])
    if (receipts.some((receipt) => receipt !== undefined)) {
      this.#looks.forget(id)
      return undefined
    }
    if (!before.isUsed || !after.isUsed) return undefined
    return chooseSmaller(before.head, after.head)
  }

  async #readPlace(
    place: LookedFor['place'],
  ): Promise<{ readonly head: bigint; readonly isUsed: boolean }> {
    const [head, count] = await Promise.all([
      readHead(this.#rpc),
      place && readTransactionCount(this.#rpc, place.signer),
    ])
    return { head, isUsed: place === undefined || (count ?? 0n) > place.nonce }
  }
}
