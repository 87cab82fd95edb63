import type { Database } from '../../../database/database.ts'
import { Gatherer } from '../../../database/gatherer.ts'
import { type Claim, findClaims } from './claim-store.ts'

/** Payments that are remembered to have no claim. */
const absentMax = 10_000

/**
 * Finds the claims of payments, those of all that ask at once by one statement. A request is looked up when it comes, and
 * again when it buys. If the first look finds nothing, the second one is spared: this process works on one payment at a
 * time, and a claim that another process makes in between is found when this one claims.
 */
export class ClaimFinds {
  readonly #finds: Gatherer<string, Claim | undefined>
  readonly #absent = new Set<string>()

  constructor(database: Database) {
    this.#finds = new Gatherer((identities) => findClaims(database, identities))
  }

  /** Finds the claim of a payment whose request has just come. */
  async lookUpFirst(identity: string): Promise<Claim | undefined> {
    const found = await this.#finds.add(identity)
    if (found === undefined) this.#absent.add(identity)
    const [oldest] = this.#absent
    if (this.#absent.size > absentMax && oldest !== undefined) this.#absent.delete(oldest)
    return found
  }

  async find(identity: string): Promise<Claim | undefined> {
    return this.#absent.delete(identity) ? undefined : this.#finds.add(identity)
  }

  /** Notes that the payment may have a claim from now on. */
  forget(identity: string): void {
    this.#absent.delete(identity)
  }
}
