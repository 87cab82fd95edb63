import type { Terms } from './terms.ts'

/** Requests that are remembered, and different terms of each. */
const requestsMax = 10_000
const termsMax = 8

/**
 * What was asked for a request while its quotes live, in the memory of this process: clients that do not echo the
 * quote pay an amount, and it must be one that they were asked for. Where it is forgotten they are asked again.
 */
export class AskedTerms {
  readonly #asked = new Map<string, readonly Terms[]>()
  #since: number

  constructor(nowMs: number) {
    this.#since = nowMs
  }

  /** All that was asked for since then is remembered while its quotes live; milliseconds since 1970. */
  get since(): number {
    return this.#since
  }

  /** `request` names the request and the network. */
  note(request: string, terms: Terms, nowMs: number): void {
    const others = this.of(request, nowMs).filter(
      (one) => one.amount !== terms.amount || one.meaning !== terms.meaning,
    )
    if (others.length >= termsMax) this.#since = nowMs
    this.#asked.delete(request)
    this.#asked.set(request, [terms, ...others].slice(0, termsMax))
    if (this.#asked.size > requestsMax)
      for (const oldest of this.#asked.keys()) {
        if (this.of(oldest, nowMs).length > 0) this.#since = nowMs
        this.#asked.delete(oldest)
        break
      }
  }

  /** The newest first; without those whose quotes are over. */
  of(request: string, nowMs: number): readonly Terms[] {
    return (this.#asked.get(request) ?? []).filter(({ expiresAt }) => expiresAt * 1000 >= nowMs)
  }
}
