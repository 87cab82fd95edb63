import { limits } from '@tollbase/contract/limits'

/** The most ends that are remembered, and those of one application. */
export type EndedBounds = { readonly max: number; readonly ofApplicationMax: number }

const usualBounds: EndedBounds = {
  max: limits.endedUploadsMax,
  ofApplicationMax: limits.endedUploadsOfApplicationMax,
}

/**
 * Remembers which uploads have ended, by the numbers of their applications, the oldest first. Each has a folder on the disk
 * and costs its application a row of a few hundred bytes, or nothing, so only some are kept, and more than an
 * application that is busy ends within the minutes in which a client whose last answer was lost asks again.
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

  /**
   * Finds the one that goes next: the oldest of the application that has the most, where that is too many, or all are;
   * undefined where all fit. So whoever ends many drives out his own, and not those of others.
   */
  findExcess(): string | undefined {
    const { max, ofApplicationMax } = this.#bounds
    let most = 0
    let holder: number | undefined
    for (const [application, count] of this.#counts) {
      if (count <= most) continue
      most = count
      holder = application
    }
    if (most <= ofApplicationMax && this.#applications.size <= max) return undefined
    for (const [id, application] of this.#applications) if (application === holder) return id
    return undefined
  }

  #count(application: number): number {
    return this.#counts.get(application) ?? 0
  }
}
