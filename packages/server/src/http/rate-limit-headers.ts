export type RateState = {
  readonly perMinute: number
  /** Requests that remain now. */
  readonly left: number
  /** Seconds until its bucket is full again. */
  readonly fullSeconds: number
}

/**
 * The headers of one answer that tell the caller what remains of his rates, as draft-ietf-httpapi-ratelimit-headers-10
 * writes them. Example: `ratelimit: "key";r=598;t=1` beside `ratelimit-policy: "key";q=600;w=60`.
 */
export class RateLimitHeaders {
  readonly #setHeader: (name: string, value: string) => void
  #left = ''
  #policies = ''

  constructor(setHeader: (name: string, value: string) => void) {
    this.#setHeader = setHeader
  }

  /** Adds the state of the named rate. */
  add(name: string, { perMinute, left, fullSeconds }: RateState): void {
    const comma = this.#left === '' ? '' : ', '
    this.#left += `${comma}"${name}";r=${left};t=${fullSeconds}`
    this.#policies += `${comma}"${name}";q=${perMinute};w=60`
    this.#setHeader('ratelimit', this.#left)
    this.#setHeader('ratelimit-policy', this.#policies)
  }
}
