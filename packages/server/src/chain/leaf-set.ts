/** A set of leaves, a bit each: a log may have millions. */
export class LeafSet {
  #bits = new Uint8Array(1_024)

  add(leaf: number): void {
    const at = Math.floor(leaf / 8)
    if (at >= this.#bits.length) {
      const longer = new Uint8Array(Math.max(at + 1, 2 * this.#bits.length))
      longer.set(this.#bits)
      this.#bits = longer
    }
    this.#bits[at] = (this.#bits[at] ?? 0) | (1 << (leaf % 8))
  }

  /** Finds the first leaf that the other set lacks. */
  findBeyond(other: LeafSet): number | undefined {
    for (const [at, bits] of this.#bits.entries()) {
      const beyond = bits & ~(other.#bits[at] ?? 0)
      if (beyond !== 0) return 8 * at + Math.log2(beyond & -beyond)
    }
    return undefined
  }
}
