import type { Terms } from '../purchase.ts'

/** Requests that are remembered, and different terms of each. */
const requestsMax = 10_000
const termsMax = 8

/**
 * The terms that were asked for each request while its quotes live, in this process's memory. A client that does
 * not echo the quote pays an amount, which must be one that it was asked for. Where the terms are forgotten, the
 * client is asked again.
 */
export class AskedTerms {
  readonly #asked = new Map<string, readonly Terms[]>()
  #since: number

  constructor(nowMs: number) {
    this.#since = nowMs
  }

  /** The time, in milliseconds since 1970, from which all that was asked for is remembered while its quotes live. */
  get since(): number {
    return this.#since
  }

  /** Remembers terms. `request` names the request and the network. */
  note(request: string, terms: Terms, nowMs: number): void {
    const known = this.#asked.get(request) ?? []
    const others = known.filter((one) => one.cap !== terms.cap || one.meaning !== terms.meaning)
    this.#forget(others.slice(termsMax - 1), nowMs)
    this.#asked.delete(request)
    this.#asked.set(request, [terms, ...others.slice(0, termsMax - 1)])
    if (this.#asked.size > requestsMax)
      for (const [oldest, lost] of this.#asked) {
        this.#forget(lost, nowMs)
        this.#asked.delete(oldest)
        break
      }
  }

  /** The newest first; without those whose quotes are over. */
  list(request: string, nowMs: number): readonly Terms[] {
    return (this.#asked.get(request) ?? []).filter((terms) => isAlive(terms, nowMs))
  }

  #forget(lost: readonly Terms[], nowMs: number): void {
    if (lost.some((terms) => isAlive(terms, nowMs))) this.#since = nowMs
  }
}

function isAlive({ expiresAt }: Terms, nowMs: number): boolean {
  return expiresAt * 1000 >= nowMs
}
