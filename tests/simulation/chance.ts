import { hash } from 'node:crypto'

/**
 * The source of all chance in a run. Each draw is a hash of the seed, the name of the operation and how often that
 * operation drew before, so one more draw of one kind leaves the draws of all others as they were.
 */
export class Chance {
  readonly #seed: string
  readonly #drawn = new Map<string, number>()

  constructor(seed: string) {
    this.#seed = seed
  }

  /** A whole number from 0 up to and without `below`. */
  below(operation: string, below: number): number {
    return this.bytes(operation, 6).readUIntBE(0, 6) % below
  }

  /** A whole number from `least` to `most`. */
  between(operation: string, least: number, most: number): number {
    return least + this.below(operation, most - least + 1)
  }

  happens(operation: string, perMille: number): boolean {
    // A draw that cannot succeed counts without its hash: most draws of the calm end of a run.
    if (perMille <= 0) {
      this.#count(operation)
      return false
    }
    return this.below(operation, 1000) < perMille
  }

  pick<T>(operation: string, from: readonly T[]): T {
    const picked = from[this.below(operation, from.length)]
    if (picked === undefined) throw new Error(`${operation}: there is nothing to pick from`)
    return picked
  }

  /** The next bytes of this operation. */
  bytes(operation: string, count: number): Buffer {
    const nth = this.#count(operation)
    if (count <= 32)
      return hash('sha256', `${this.#seed}/${operation}/${nth}/0`, 'buffer').subarray(0, count)
    const parts: Buffer[] = []
    for (let part = 0; part * 32 < count; part++) {
      const text = `${this.#seed}/${operation}/${nth}/${part}`
      parts.push(hash('sha256', text, 'buffer'))
    }
    return Buffer.concat(parts).subarray(0, count)
  }

  /** Counts a draw of this operation; returns how often it drew before. */
  #count(operation: string): number {
    const nth = this.#drawn.get(operation) ?? 0
    this.#drawn.set(operation, nth + 1)
    return nth
  }
}
