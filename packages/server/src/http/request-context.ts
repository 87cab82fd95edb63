/** How a request's work turned out. */
export type Outcome = {
  readonly status: number
  /** A payment was taken for it, and this is the first answer that it bought. */
  readonly boughtNew: boolean
}

/** Kinds of requests of which only so many are worked on at once. */
export type PlaceName = 'anonymous_in_flight' | 'paying_in_flight'

/** What is known of one request beside its operation: for rate limits and the access log. */
export class Pass {
  /** When it began, by the world's ticks. */
  readonly startedAt: number
  /** anonymous, key, operator or wallet; unknown where it was not found out. */
  caller = 'unknown'
  /** The first 8 characters of the key. */
  keyPrefix: string | undefined
  /** The application that it addresses, or whose key it bears. */
  app: string | undefined
  /** The place that its work needs. */
  place: PlaceName | undefined
  /** Frees that place. */
  leave: (() => void) | undefined
  /** The text of its key, and what is made of it: that is asked for before and after its body is read. */
  hashedKey:
    | { readonly text: string; readonly hash: string; readonly isOperator: boolean }
    | undefined
  /** Whether its body is here. */
  hasArrived = false
  /** When it was first looked at for being late, in milliseconds since 1970. */
  seenAtMs: number | undefined
  /** Settles what it costs once that is known. */
  ended: ((outcome: Outcome) => void) | undefined
  readonly #setHeader: (name: string, value: string) => void
  #gone: AbortController | undefined
  #isGone = false
  #left = ''
  #policies = ''

  /** `setHeader` puts a header on the answer. */
  constructor(startedAt: number, setHeader: (name: string, value: string) => void) {
    this.startedAt = startedAt
    this.#setHeader = setHeader
  }

  /** Aborted once the client has closed the connection before the answer was out. */
  gone(): AbortSignal {
    // Few requests ask for it, and it is not made for the others.
    this.#gone ??= new AbortController()
    if (this.#isGone) this.#gone.abort()
    return this.#gone.signal
  }

  /** The client has closed the connection before the answer was out. */
  hangUp(): void {
    this.#isGone = true
    this.#gone?.abort()
  }

  /** Its work is over: settles what it costs and frees its place. Only the first call counts. */
  finish(outcome: Outcome): void {
    const { ended, leave } = this
    this.ended = undefined
    this.leave = undefined
    ended?.(outcome)
    leave?.()
  }

  /** Tells the caller of a quota that was taken from, as draft-ietf-httpapi-ratelimit-headers-10 writes it. */
  showQuota(
    name: string,
    quota: { readonly perMinute: number; readonly left: number; readonly fullSeconds: number },
  ): void {
    const comma = this.#left === '' ? '' : ', '
    this.#left += `${comma}"${name}";r=${quota.left};t=${quota.fullSeconds}`
    this.#policies += `${comma}"${name}";q=${quota.perMinute};w=60`
    this.#setHeader('ratelimit', this.#left)
    this.#setHeader('ratelimit-policy', this.#policies)
  }
}
