/**
 * Counts the bytes that were sent of each application on a day, so that one which writes much takes from the others
 * only what they leave. A restart forgets the count: then it begins anew for all.
 */
export class DayShares {
  #day = 0
  readonly #bytes = new Map<string, number>()

  note(day: number, app: string, bytes: number): void {
    this.#begin(day)
    this.#bytes.set(app, this.#get(app) + bytes)
  }

  /** Sorts by what was sent of the application, the least first; those of equal share stay in their order. */
  sort<T extends { readonly app: string }>(day: number, items: readonly T[]): T[] {
    this.#begin(day)
    return [...items].sort((a, b) => this.#get(a.app) - this.#get(b.app))
  }

  #get(app: string): number {
    return this.#bytes.get(app) ?? 0
  }

  #begin(day: number): void {
    if (day === this.#day) return
    this.#day = day
    this.#bytes.clear()
  }
}
