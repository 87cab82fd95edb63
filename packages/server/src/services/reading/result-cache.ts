import { LRUCache } from 'lru-cache'
import type { Watermark } from '../../chain/block-store.ts'

/** The positions of the chains that an answer was read from, as `Chain.stillPosition` returns them. */
export type Positions = readonly Watermark[]

type CachedResult = { readonly body: Buffer; readonly positions: Positions }

/** The approximate overhead of an entry: the map, the objects and the head of a buffer. */
const entryBytes = 512
/** The largest part of the room that one answer may take, so that it does not drive out all others. */
const shareMost = 1 / 8

/**
 * A cache of free answers of predefined queries, in the memory of this process; the least recently used goes first.
 */
export class ResultCache {
  readonly #kept: LRUCache<string, CachedResult>
  readonly #bytesMax: number
  readonly #onLookup: (result: 'hit' | 'miss') => void

  /** A `bytesMax` of 0 turns the cache off. */
  constructor(options: {
    readonly bytesMax: number
    readonly onLookup: (result: 'hit' | 'miss') => void
  }) {
    this.#bytesMax = options.bytesMax
    // A cache that is off has no room for any answer; the library wants room for a byte.
    this.#kept = new LRUCache({ maxSize: Math.max(1, options.bytesMax) })
    this.#onLookup = options.onLookup
  }

  get isOff(): boolean {
    return this.#bytesMax === 0
  }

  /** The bytes of keys and answers, with the overhead of storing them. */
  get bytes(): number {
    return this.#kept.calculatedSize
  }

  /** Returns the answer that was read at these positions. */
  find(key: string, positions: Positions): Buffer | undefined {
    const kept = this.#kept.get(key)
    const isGood = kept !== undefined && isSame(kept.positions, positions)
    this.#onLookup(isGood ? 'hit' : 'miss')
    return isGood ? kept.body : undefined
  }

  /** Stores an answer in the place of an earlier one. */
  put(key: string, positions: Positions, text: string | Buffer): void {
    this.#kept.delete(key)
    const length = Buffer.byteLength(text)
    const size = length + 2 * key.length + entryBytes
    if (size > this.#bytesMax * shareMost) return
    // The buffer is not from the pool, where a few bytes would keep a whole slab.
    const body = Buffer.allocUnsafeSlow(length)
    if (typeof text === 'string') body.write(text)
    else text.copy(body)
    this.#kept.set(key, { body, positions }, { size })
  }
}

/** Each object stands for one state of a chain's tables, so a reopened chain matches nothing from before. */
export function isSame(some: Positions, others: Positions): boolean {
  return some.length === others.length && some.every((one, at) => one === others[at])
}
