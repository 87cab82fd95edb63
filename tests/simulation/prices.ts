type Change = {
  readonly price: bigint
  /** The market's step at which the seller was told that the price is in force. */
  acknowledgedAt: number | undefined
}

/** The prices that a thing may have, known from all that its seller asked for and was answered. */
export class Prices {
  readonly #changes: Change[]

  constructor(first: bigint) {
    this.#changes = [{ price: first, acknowledgedAt: 0 }]
  }

  /** The seller asks for another price; the returned function notes that he was told that it is in force. */
  change(price: bigint, step: () => number): () => void {
    const change: Change = { price, acknowledgedAt: undefined }
    this.#changes.push(change)
    return () => {
      change.acknowledgedAt = step()
    }
  }

  /**
   * Lists the prices that could be in force from a step on: the last one that was acknowledged before, all that
   * were acknowledged later, and those whose fate is unknown.
   */
  since(step: number): bigint[] {
    const isBefore = ({ acknowledgedAt: at }: Change) => at !== undefined && at < step
    const last = this.#changes.findLast(isBefore)
    return this.#changes.filter((one) => one === last || !isBefore(one)).map(({ price }) => price)
  }
}
