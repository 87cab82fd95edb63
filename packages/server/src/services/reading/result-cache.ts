import type { Watermark } from '../../chain/block-store.ts'

/** The positions of the chains that an answer was read from, as `Chain.settled` returns them. */
export type Positions = readonly Watermark[]

type CachedResult = { readonly body: Buffer; readonly positions: Positions; readonly bytes: number }

/** The approximate overhead of an entry: the map, the objects and the head of a buffer. */
const entryBytes = 512
/** The largest part of the room that one answer may take, so that it does not drive out all others. */
const shareMost = 1 / 8

/**
 * A cache of free answers of predefined queries, in the memory of this process; the least recently used goes first.
 */
export class ResultCache {
  readonly #kept = new Map<string, CachedResult>()
  readonly #bytesMax: number
  readonly #onLookup: (result: 'hit' | 'miss') => void
  #bytes = 0

  /** A `bytesMax` of 0 turns the cache off. */
  constructor(options: {
    readonly bytesMax: number
    readonly onLookup: (result: 'hit' | 'miss') => void
  }) {
    this.#bytesMax = options.bytesMax
    this.#onLookup = options.onLookup
  }

  get isOff(): boolean {
    return this.#bytesMax === 0
  }

  /** The bytes of keys and answers, with the overhead of storing them. */
  get bytes(): number {
    return this.#bytes
  }

  /** Returns the answer that was read at these positions. */
  find(key: string, positions: Positions): Buffer | undefined {
    const kept = this.#kept.get(key)
    const isGood = kept !== undefined && isSame(kept.positions, positions)
    this.#onLookup(isGood ? 'hit' : 'miss')
    if (!isGood) return undefined
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    return kept.body
  }

  /** Stores an answer in the place of an earlier one. */
  put(key: string, positions: Positions, text: string): void {
    this.#forget(key)
    const length = Buffer.byteLength(text)
    const bytes = length + 2 * key.length + entryBytes
    if (bytes > this.#bytesMax * shareMost) return
    // The buffer is not from the pool, where a few bytes would keep a whole slab.
    const body = Buffer.allocUnsafeSlow(length)
    body.write(text)
    this.#kept.set(key, { body, positions, bytes })
    this.#bytes += bytes
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#bytesMax) break
      this.#forget(oldest)
    }
  }

  #forget(key: string): void {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0
    this.#kept.delete(key)
  }
}

/** Each object stands for one state of a chain's tables, so a reopened chain matches nothing from before. */
export function isSame(some: Positions, others: Positions): boolean {
  return some.length === others.length && some.every((one, at) => one === others[at])
}
