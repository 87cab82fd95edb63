import { RateLimitHeaders } from './rate-limit-headers.ts'

/** The outcome of a request's work. */
export type Outcome = {
  readonly status: number
  /**
   * The first answer that a payment bought, which pays for its entry in the log, or is `cheap`; `none` for all else, what
   * was bought before included.
   */
  readonly sale: 'paid' | 'cheap' | 'none'
}

/** Characters of a stored query. */
type ReadChars = { readonly sql: number; readonly other: number }

export type NoteRead = (chars: ReadChars) => void

/** Kinds of requests whose concurrency is bounded. */
export type InFlightName = 'anonymous_in_flight' | 'paying_in_flight'

/** The context of one request beside its operation: for rate limits and the access log. */
export class RequestContext {
  /** Start of the request, in the world's ticks. */
  readonly startedAt: number
  readonly rateLimitHeaders: RateLimitHeaders
  /** anonymous, key, operator or wallet; unknown before authorization. */
  caller = 'unknown'
  /** The first 8 characters of the key. */
  keyPrefix: string | undefined
  /** The application that it addresses, or that its key belongs to. */
  app: string | undefined
  /** The in-flight limit that its work counts to, and the address whose place it takes. */
  place: { readonly limit: InFlightName; readonly address: string } | undefined
  /** Frees its place under that limit. */
  leave: (() => void) | undefined
  /** The text of its key with the hash, which is needed before and after its body is read. */
  hashedKey:
    | { readonly text: string; readonly hash: string; readonly isOperator: boolean }
    | undefined
  /** Its place among the open replies. */
  openAt = -1
  /** True once it has an answer, which may wait to be written. */
  isAnswered = false
  /** True once its body has arrived. */
  hasArrived = false
  /** Time of the first check for lateness, in milliseconds since 1970. */
  seenAtMs: number | undefined
  /** Notes work that it has caused beside itself, in points, which a caller without a key is charged for. */
  noteWork: (points: number) => void = () => undefined
  /** Notes that a stored query was read for it, which is such work. */
  noteRead: NoteRead = () => undefined
  /** Settles its cost once that is known. */
  ended: ((outcome: Outcome) => void) | undefined
  #gone: AbortController | undefined
  #isGone = false

  /** `setHeader` puts a header on the answer. */
  constructor(startedAt: number, setHeader: (name: string, value: string) => void) {
    this.startedAt = startedAt
    this.rateLimitHeaders = new RateLimitHeaders(setHeader)
  }

  /** Returns a signal that is aborted once the client has closed the connection before the answer was out. */
  getAbortSignal(): AbortSignal {
    // The signal is made on demand, since few requests need it.
    this.#gone ??= new AbortController()
    if (this.#isGone) this.#gone.abort()
    return this.#gone.signal
  }

  /** Notes that the client has closed the connection before the answer was out. */
  hangUp(): void {
    this.#isGone = true
    this.#gone?.abort()
  }

  /** Ends its work: settles its cost and frees its place. Only the first call counts. */
  finish(outcome: Outcome): void {
    const { ended, leave } = this
    this.ended = undefined
    this.leave = undefined
    ended?.(outcome)
    leave?.()
  }
}
