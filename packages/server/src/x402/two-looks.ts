import type { World } from '../base/world.ts'

/** The heights that a look at the chain was told. */
export type LookHeights = {
  /** The newest block of the node that answered. */
  readonly head: bigint
  /** The height up to which no block is replaced any more. */
  readonly final: bigint
}

type Known = {
  /** The newest block of the first look, and its time. */
  readonly height: bigint
  readonly atMs: number
  readonly lookedMs: number
}

/** The least time between two looks: nodes behind one address differ for some seconds, and blocks may be final at once. */
const apartMs = 60_000
/** The time after which a look says nothing about the next one. */
const staleMs = 3_600_000

/**
 * Decides what one look at the chain cannot: each call to it may meet another one of several nodes, some of which are
 * behind. Two looks that find the same, a minute apart, are right for good once the block that was the newest at the first
 * one is final.
 */
export class TwoLooks {
  readonly #world: Pick<World, 'now'>
  readonly #known = new Map<string, Known>()

  constructor(world: Pick<World, 'now'>) {
    this.#world = world
  }

  /** Notes that a look found it so; true where an earlier one did, and no later one can find otherwise. */
  agree(id: string, { head, final }: LookHeights): boolean {
    const now = this.#world.now()
    const known = this.#known.get(id)
    // A node that is behind the first one, or the first one told of a block that no chain has.
    if (known === undefined || now - known.lookedMs > staleMs || head < known.height) {
      this.#forgetOld(now)
      this.#known.set(id, { height: head, atMs: now, lookedMs: now })
      return false
    }
    // A time before which the clock was set back says nothing.
    const atMs = Math.min(known.atMs, now)
    this.#known.set(id, { ...known, atMs, lookedMs: now })
    return final >= known.height && now - atMs >= apartMs
  }

  /** Forgets what was found so, as a look found it otherwise. */
  forget(id: string): void {
    this.#known.delete(id)
  }

  #forgetOld(now: number): void {
    for (const [id, { lookedMs }] of this.#known)
      if (now - lookedMs > staleMs) this.#known.delete(id)
  }
}
