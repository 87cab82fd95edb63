import type { Watermark } from '../../chain/block-store.ts'

/** Where the chains are that an answer was read from, as `Chain.settled` says. */
export type Positions = readonly Watermark[]

type Kept = { readonly body: Buffer; readonly positions: Positions; readonly bytes: number }

/** What the map, the objects and the head of a buffer take of an entry, roughly. */
const entryBytes = 512
/** Of the room one answer takes this part at most, so that it does not drive out all others. */
const shareMost = 1 / 8

/** Free answers of predefined queries, in the memory of this process; the one unused the longest goes first. */
export class KeptAnswers {
  readonly #kept = new Map<string, Kept>()
  readonly #bytesMax: number
  readonly #onLookup: (result: 'hit' | 'miss') => void
  #bytes = 0

  /** `bytesMax` of 0: nothing is kept. */
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

  /** Of keys and answers, with what keeping them costs. */
  get bytes(): number {
    return this.#bytes
  }

  /** The answer that was read at these positions. */
  find(key: string, positions: Positions): Buffer | undefined {
    const kept = this.#kept.get(key)
    const isGood = kept !== undefined && isSame(kept.positions, positions)
    this.#onLookup(isGood ? 'hit' : 'miss')
    if (!isGood) return undefined
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    return kept.body
  }

  /** Takes the place of an answer that was read before. */
  keep(key: string, positions: Positions, text: string): void {
    this.#forget(key)
    const length = Buffer.byteLength(text)
    const bytes = length + 2 * key.length + entryBytes
    if (bytes > this.#bytesMax * shareMost) return
    // Not of a pool, of which a few bytes would hold a whole piece.
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

/** One object is one state of a chain's tables, so a chain that was opened anew matches nothing of before. */
export function isSame(some: Positions, others: Positions): boolean {
  return some.length === others.length && some.every((one, at) => one === others[at])
}
