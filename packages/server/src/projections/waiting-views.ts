import { limits } from '@tollbase/contract/limits'
import type { AppliedEntry } from '../chain/applier.ts'
import type { Catalog } from '../model/catalog.ts'
import type { PlannedView } from '../model/view-plan.ts'

const none: ReadonlySet<string> = new Set()

/** What one transaction of the lane does about live views. */
export type Decision = {
  /** They are brought to its end. */
  readonly due: readonly PlannedView[]
  /** They lack nothing, neither before it nor after. */
  readonly unchanged: readonly PlannedView[]
  /** Ids of those that wait for a later one. */
  readonly waiting: ReadonlySet<string>
  /** When all of them were brought on last, in ticks. */
  readonly since: number
}

type Written = {
  readonly catalog: Catalog
  readonly entries: readonly AppliedEntry[]
  /** Whether none may wait any longer. */
  readonly catchUp: boolean
}

/**
 * Which live views of an application lack what its tables have. Where writes come close together and nobody reads a
 * view, it takes in several of them at once: a group that all of them change is then made anew once. One that is read
 * takes in each with the records, so that its readers see it where the tables are, in one snapshot.
 */
export class WaitingViews {
  readonly #ticks: () => number
  #waiting = none
  /** Of the transaction under way: others may see the tables before it is known here that it was committed. */
  #coming = none
  #since = Number.NEGATIVE_INFINITY
  readonly #readAt = new Map<string, number>()

  constructor(ticks: () => number) {
    this.#ticks = ticks
  }

  /** How far views were when the chain was closed is not known. */
  open(catalog: Catalog): void {
    this.#waiting = new Set(liveViews(catalog).map(({ view }) => view.id))
    this.#since = Number.NEGATIVE_INFINITY
  }

  /** Somebody reads a live view; from now on no transaction leaves it behind. */
  noteRead(view: { readonly id: string }): void {
    this.#readAt.set(view.id, this.#ticks())
  }

  /** Whether a live view lacks what the tables have, or will have in a moment, until the lane catches up. */
  isBehind(view: { readonly id: string }): boolean {
    return this.#waiting.has(view.id) || this.#coming.has(view.id)
  }

  /** By when all are to be where the tables are; undefined where they are. */
  catchUpAt(): number | undefined {
    const isBehind = this.#waiting.size > 0 || this.#coming.size > 0
    return isBehind ? this.#since + limits.viewPauseMs : undefined
  }

  /** For a transaction that writes these entries; it may be decided anew where that one fails. */
  decide({ catalog, entries, catchUp }: Written): Decision {
    const views = liveViews(catalog)
    if (views.length === 0) return { due: [], unchanged: [], waiting: none, since: this.#since }
    const written = new Set(entries.map(({ header }) => String(header.collection)))
    const isChanged = ({ view }: PlannedView) =>
      this.#waiting.has(view.id) || view.reads.some(({ id }) => written.has(id))
    const changed = views.filter(isChanged)
    const now = this.#ticks()
    const isTime = catchUp || now >= this.#since + limits.viewPauseMs
    const isDue = ({ view }: PlannedView) => {
      const readAt = this.#readAt.get(view.id) ?? Number.NEGATIVE_INFINITY
      return isTime || now - readAt < limits.viewReadMs
    }
    const due = changed.filter(isDue)
    const waiting = new Set(changed.filter((each) => !isDue(each)).map(({ view }) => view.id))
    this.#coming = waiting
    return {
      due,
      unchanged: views.filter((each) => !isChanged(each)),
      waiting,
      since: isTime && due.length > 0 ? now : this.#since,
    }
  }

  /** The transaction was committed, and its catalog is in force. */
  committed({ waiting, since }: Decision, catalog: Catalog): void {
    this.#waiting = waiting
    this.#coming = none
    this.#since = since
    for (const id of this.#readAt.keys()) if (!catalog.views.has(id)) this.#readAt.delete(id)
  }
}

function liveViews(catalog: Catalog): readonly PlannedView[] {
  return [...catalog.views.values()].filter(({ view }) => view.refresh_mode === 'live')
}
