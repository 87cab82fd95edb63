import { limits } from '@tollbase/contract/limits'

/** The most payers whose failures are remembered. */
const payersMax = 4096

/**
 * Remembers the payments that failed on our gas after they were found good. One transaction of a payer can fail many
 * (an allowance taken back), and a wallet with code can fail each for nothing: so a payer has a few in an hour.
 */
export class Failures {
  readonly #payers = new Map<string, Map<string, number>>()

  /** Notes a payment by its id; the same one counts once. */
  note(payer: string, id: string, nowMs: number): void {
    const known = this.#payers.get(payer) ?? new Map<string, number>()
    // The last one to fail is the last one to be forgotten.
    this.#payers.delete(payer)
    this.#payers.set(payer, known.set(id, nowMs))
    const [oldest] = this.#payers.keys()
    if (this.#payers.size > payersMax && oldest !== undefined) this.#payers.delete(oldest)
  }

  /** Returns true where no more payments of this payer are tried for now. */
  isOver(payer: string, nowMs: number): boolean {
    const known = this.#payers.get(payer)
    if (known === undefined) return false
    for (const [id, atMs] of known)
      if (atMs + limits.uptoFailureSeconds * 1000 <= nowMs) known.delete(id)
    return known.size >= limits.uptoFailuresMax
  }
}
