import { LRUCache } from 'lru-cache'
import { dayMs } from '../../../base/durations.ts'
import type { World } from '../../../base/world.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import type { Claim } from './claim-store.ts'

/** Claims that are remembered: each other one is looked at once more. */
const rememberedMax = 10_000
/** The part of the time since its end after which a payment is looked at again. */
const agePart = 16

type Ended = Pick<Claim, 'id' | 'valid_before'>

/**
 * Spaces the looks at payments past their end that the chain calls used, and of which it shows no more: nothing but a
 * reorganisation, or another node, changes that. Their rows stay open for good, and each look costs some calls. One
 * that is brought again is looked at whenever it is.
 */
export class RareLooks {
  readonly #world: Pick<World, 'now'>
  readonly #nextMs = new LRUCache<string, number>({ max: rememberedMax })

  constructor(world: Pick<World, 'now'>) {
    this.#world = world
  }

  isDue({ id }: Ended): boolean {
    return (this.#nextMs.get(id) ?? 0) <= this.#world.now()
  }

  /** Notes what a look found. */
  note(claim: Ended, outcome: Settlement): void {
    const now = this.#world.now()
    const ageMs = now - Number(claim.valid_before) * 1000
    if (ageMs <= 0 || !isUnseen(outcome)) this.#nextMs.delete(claim.id)
    else this.#nextMs.set(claim.id, now + Math.min(ageMs / agePart, dayMs))
  }
}

function isUnseen(outcome: Settlement): boolean {
  if (outcome.state !== 'pending') return false
  return outcome.usedIn !== undefined || outcome.reason === 'use_not_found'
}
