import { LRUCache } from 'lru-cache'

export type FairCacheBounds = {
  readonly bytesMax: number
  /** The most that one holder keeps. */
  readonly shareBytesMax: number
}

type Kept<Value> = { readonly holder: string; readonly value: Value }

/**
 * A cache with a bound in bytes: what was unused the longest goes first. No holder has more than its share, so that
 * none of them drives out all that the others use; past it, what goes is its own.
 */
export class FairCache<Value> {
  readonly #shareBytesMax: number
  readonly #kept: LRUCache<string, Kept<Value>>
  /** The keys of each holder, in the order of their use as well. */
  readonly #ofHolder = new Map<string, LRUCache<string, true>>()

  constructor({ bytesMax, shareBytesMax }: FairCacheBounds) {
    this.#shareBytesMax = shareBytesMax
    this.#kept = new LRUCache<string, Kept<Value>>({
      maxSize: bytesMax,
      dispose: ({ holder }, key, reason) => {
        if (reason === 'evict') this.#forget(holder, key)
      },
    })
  }

  /** The bytes of all that is kept. */
  get bytes(): number {
    return this.#kept.calculatedSize
  }

  get(holder: string, key: string): Value | undefined {
    const name = formatName(holder, key)
    this.#ofHolder.get(holder)?.get(name)
    return this.#kept.get(name)?.value
  }

  /** Keeps a value in the place of an earlier one; one that is larger than a share is not kept. */
  set(holder: string, key: string, { value, bytes }: { value: Value; bytes: number }): void {
    const name = formatName(holder, key)
    const own = this.#ofHolder.get(holder) ?? this.#addHolder(holder)
    // The library counts an entry anew only where its value is another one.
    own.delete(name)
    own.set(name, true, { size: bytes })
    if (own.has(name)) this.#kept.set(name, { holder, value }, { size: bytes })
    else {
      this.#kept.delete(name)
      this.#forget(holder, name)
    }
  }

  #addHolder(holder: string): LRUCache<string, true> {
    const own = new LRUCache<string, true>({
      maxSize: this.#shareBytesMax,
      dispose: (_, name, reason) => {
        if (reason === 'evict') this.#kept.delete(name)
      },
    })
    this.#ofHolder.set(holder, own)
    return own
  }

  #forget(holder: string, name: string): void {
    const own = this.#ofHolder.get(holder)
    own?.delete(name)
    if (own?.size === 0) this.#ofHolder.delete(holder)
  }
}

function formatName(holder: string, key: string): string {
  return `${holder}\n${key}`
}
