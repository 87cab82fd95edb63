/**
 * The caps of answers that are made before they are held, by account. Each buyer who has a balance for one answer could
 * ask for a hundred at once, and pay for one: so no more is answered first than the account could pay together.
 */
export class Advances {
  readonly #caps = new Map<string, bigint>()

  /** Counts a purchase until `end`; `ahead` is what those before it may take of the same account. */
  begin(
    account: string,
    cap: bigint,
  ): {
    readonly ahead: bigint
    readonly end: () => void
  } {
    const ahead = this.#caps.get(account) ?? 0n
    this.#caps.set(account, ahead + cap)
    return { ahead, end: () => this.#subtract(account, cap) }
  }

  #subtract(account: string, cap: bigint): void {
    const left = (this.#caps.get(account) ?? 0n) - cap
    if (left > 0n) this.#caps.set(account, left)
    else this.#caps.delete(account)
  }
}
