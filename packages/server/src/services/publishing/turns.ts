/**
 * Says whose chunks are sent next: those of the application that has sent the least on a day, so that one which writes
 * much takes from the others only what they leave. One whose chunk could not be sent comes after all others, so that it
 * holds up nobody. A restart forgets both: then it begins anew for all.
 */
export class Turns {
  #day = 0
  readonly #bytes = new Map<string, number>()
  /** Applications whose last chunk could not be sent, the one that was tried longest ago first. */
  readonly #failed = new Set<string>()

  noteSent(day: number, app: string, bytes: number): void {
    this.#begin(day)
    this.#bytes.set(app, this.#get(app) + bytes)
    this.#failed.delete(app)
  }

  noteFailed(app: string): void {
    this.#failed.delete(app)
    this.#failed.add(app)
  }

  /** Sorts by the turns of the applications; those of equal ones stay in their order. */
  sort<T extends { readonly app: string }>(day: number, items: readonly T[]): T[] {
    this.#begin(day)
    const failed = new Map([...this.#failed].map((app, at) => [app, at + 1]))
    const getPlace = (app: string) => failed.get(app) ?? 0
    return [...items].sort(
      (a, b) => getPlace(a.app) - getPlace(b.app) || this.#get(a.app) - this.#get(b.app),
    )
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
