/** The result of trying to take tokens. */
export type Taken = {
  readonly ok: boolean
  /** Whole tokens that are left. */
  readonly left: number
  /** Time until the requested tokens are there; 0 where they were taken. */
  readonly waitMs: number
  /** Time until the bucket is full again. */
  readonly fullMs: number
}

type Bucket = { tokens: number; atMs: number }

/**
 * Token buckets by key, in bounded memory. A bucket holds what a minute allows and fills evenly. A full one carries no
 * information and is forgotten; where there are too many, the least recently used goes.
 */
export class TokenBuckets {
  readonly #perMinute: number
  readonly #bucketsMax: number
  /** Buckets in the order of their last use. */
  readonly #buckets = new Map<string, Bucket>()

  constructor(options: { readonly perMinute: number; readonly bucketsMax: number }) {
    this.#perMinute = options.perMinute
    this.#bucketsMax = options.bucketsMax
  }

  get size(): number {
    return this.#buckets.size
  }

  /** Takes tokens if so many are there. A cost above what a minute allows takes a full bucket. */
  take(key: string, cost: number, nowMs: number): Taken {
    const bucket = this.#use(key, nowMs)
    const asked = Math.min(cost, this.#perMinute)
    const ok = bucket.tokens >= asked
    if (ok) bucket.tokens -= asked
    return {
      ok,
      left: Math.max(0, Math.floor(bucket.tokens)),
      waitMs: ok ? 0 : this.#msFor(asked - bucket.tokens),
      fullMs: this.#msFor(this.#perMinute - bucket.tokens),
    }
  }

  /** Computes the time until so many tokens are there, in milliseconds; takes nothing. */
  computeWait(key: string, tokens: number, nowMs: number): number {
    const bucket = this.#buckets.get(key)
    if (bucket === undefined) return 0
    this.#fill(bucket, nowMs)
    return this.#msFor(tokens - bucket.tokens)
  }

  /** Takes tokens that are owed, down to a minute's debt; returns how many. */
  charge(key: string, cost: number, nowMs: number): number {
    const bucket = this.#use(key, nowMs)
    const before = bucket.tokens
    bucket.tokens = Math.max(-this.#perMinute, before - cost)
    return before - bucket.tokens
  }

  giveBack(key: string, tokens: number, nowMs: number): void {
    const bucket = this.#use(key, nowMs)
    bucket.tokens = Math.min(this.#perMinute, bucket.tokens + tokens)
  }

  #use(key: string, nowMs: number): Bucket {
    const found = this.#buckets.get(key)
    if (found === undefined) {
      this.#makeRoom(nowMs)
      const fresh = { tokens: this.#perMinute, atMs: nowMs }
      this.#buckets.set(key, fresh)
      return fresh
    }
    this.#fill(found, nowMs)
    this.#buckets.delete(key)
    this.#buckets.set(key, found)
    return found
  }

  #fill(bucket: Bucket, nowMs: number): void {
    // A clock that was set back gives nothing and takes nothing.
    const passedMs = Math.max(0, nowMs - bucket.atMs)
    bucket.tokens = Math.min(this.#perMinute, bucket.tokens + (passedMs * this.#perMinute) / 60_000)
    bucket.atMs = nowMs
  }

  /** Checks two buckets for each new one: memory shrinks again after a rush, without a timer. */
  #makeRoom(nowMs: number): void {
    let looks = 2
    for (const [key, bucket] of this.#buckets) {
      const isCrowded = this.#buckets.size >= this.#bucketsMax
      if (!isCrowded) {
        if (looks === 0) return
        looks -= 1
        this.#fill(bucket, nowMs)
        if (bucket.tokens < this.#perMinute) return
      }
      this.#buckets.delete(key)
    }
  }

  #msFor(tokens: number): number {
    return Math.max(0, (tokens * 60_000) / this.#perMinute)
  }
}
