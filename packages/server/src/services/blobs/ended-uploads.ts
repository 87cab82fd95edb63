import { limits } from '@tollbase/contract/limits'

/** The most ends that are remembered, and those of one application. */
export type EndedBounds = { readonly max: number; readonly ofApplicationMax: number }

const usualBounds: EndedBounds = {
  max: limits.endedUploadsMax,
  ofApplicationMax: limits.endedUploadsOfApplicationMax,
}

/**
 * Remembers which uploads have ended, by the numbers of their applications, the oldest first. Each has a folder on the disk
 * and costs its application a row of a few hundred bytes, or nothing, so only some are kept: a client whose last answer was
 * lost asks within minutes.
 */
export class EndedUploads {
  readonly #bounds: EndedBounds
  readonly #applications = new Map<string, number>()
  readonly #counts = new Map<number, number>()

  constructor(bounds: EndedBounds = usualBounds) {
    this.#bounds = bounds
  }

  add(id: string, application: number): void {
    this.delete(id)
    this.#applications.set(id, application)
    this.#counts.set(application, this.#count(application) + 1)
  }

  delete(id: string): void {
    const application = this.#applications.get(id)
    if (application === undefined) return
    this.#applications.delete(id)
    const rest = this.#count(application) - 1
    if (rest > 0) this.#counts.set(application, rest)
    else this.#counts.delete(application)
  }

  /** Finds the one that goes next: the oldest of an application that has too many, or of all; undefined where all fit. */
  findExcess(): string | undefined {
    const { max, ofApplicationMax } = this.#bounds
    const isFull = this.#applications.size > max
    for (const [id, application] of this.#applications)
      if (isFull || this.#count(application) > ofApplicationMax) return id
    return undefined
  }

  #count(application: number): number {
    return this.#counts.get(application) ?? 0
  }
}
