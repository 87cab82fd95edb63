import type { AppliedEntry } from '../chain/applier.ts'
import type { Catalog } from '../model/catalog.ts'
import type { PlannedView } from '../model/view-plan.ts'

/** Entries that wait for a live view at most, so that what it takes in at once fits into its time. */
const viewWaitingEntriesMax = 500
/** Writes closer together than this are taken in by a live view several at once, unless it was read lately. */
export const viewPauseMs = 100
/** Time for which a view counts as read lately. */
export const viewReadMs = 60_000

const none: ReadonlySet<string> = new Set()

/** The decision of one transaction of the applier about live views. */
export type Decision = {
  /** The views that are brought to its end. */
  readonly due: readonly PlannedView[]
  /** The views that lack nothing, neither before it nor after. */
  readonly unchanged: readonly PlannedView[]
  /** Ids of those that wait for a later one. */
  readonly waiting: ReadonlySet<string>
  /** When all of them were brought on last, in ticks, and the number of entries since. */
  readonly since: number
  readonly entries: number
}

type Written = {
  readonly catalog: Catalog
  readonly entries: readonly AppliedEntry[]
  /** True if no view may wait any longer. */
  readonly catchUp: boolean
}

/**
 * The live views of an application that are behind its tables. If writes come close together and nobody reads a view,
 * the view takes in several writes at once, so that a group that all of them change is computed once. A view that is
 * being read takes in each write in the transaction of the records, so its readers see it in one snapshot with the
 * tables.
 */
export class WaitingViews {
  readonly #ticks: () => number
  #waiting = none
  /**
   * The views left waiting by the transaction under way: others may see the tables before its commit is known here.
   */
  #coming = none
  #since = Number.NEGATIVE_INFINITY
  #entries = 0
  readonly #readAt = new Map<string, number>()

  constructor(ticks: () => number) {
    this.#ticks = ticks
  }

  /** All live views count as behind, because their positions when the chain was closed are not known. */
  open(catalog: Catalog): void {
    this.#waiting = new Set(listLiveViews(catalog).map(({ view }) => view.id))
    this.#since = Number.NEGATIVE_INFINITY
  }

  /** Somebody reads a live view; from now on no transaction leaves it behind. */
  noteRead(view: { readonly id: string }): void {
    this.#readAt.set(view.id, this.#ticks())
  }

  /**
   * Returns true if a live view lacks, or will lack in a moment, what the tables have, until the applier catches
   * up.
   */
  isBehind(view: { readonly id: string }): boolean {
    return this.#waiting.has(view.id) || this.#coming.has(view.id)
  }

  /** Returns the time by which all views are to be where the tables are; undefined where they are. */
  catchUpAt(): number | undefined {
    const isBehind = this.#waiting.size > 0 || this.#coming.size > 0
    return isBehind ? this.#since + viewPauseMs : undefined
  }

  /** For a transaction that writes these entries; it may be decided anew where that one fails. */
  decide({ catalog, entries, catchUp }: Written): Decision {
    const views = listLiveViews(catalog)
    if (views.length === 0)
      return { due: [], unchanged: [], waiting: none, since: this.#since, entries: 0 }
    const written = new Set(entries.map(({ header }) => String(header.collection)))
    const isChanged = ({ view }: PlannedView) =>
      this.#waiting.has(view.id) || view.reads.some(({ id }) => written.has(id))
    const changed = views.filter(isChanged)
    const now = this.#ticks()
    const more = this.#entries + entries.length
    // A view has a bounded time, so the entries that it takes in at once must not grow with the speed of the writes.
    const isFull = more > viewWaitingEntriesMax
    const isTime = catchUp || isFull || now >= this.#since + viewPauseMs
    const isDue = ({ view }: PlannedView) => {
      const readAt = this.#readAt.get(view.id) ?? Number.NEGATIVE_INFINITY
      return isTime || now - readAt < viewReadMs
    }
    const due = changed.filter(isDue)
    const waiting = new Set(changed.filter((each) => !isDue(each)).map(({ view }) => view.id))
    this.#coming = waiting
    return {
      due,
      unchanged: views.filter((each) => !isChanged(each)),
      waiting,
      since: isTime && due.length > 0 ? now : this.#since,
      entries: isTime ? 0 : more,
    }
  }

  /** The transaction was committed, and its catalog is in force. */
  noteCommit({ waiting, since, entries }: Decision, catalog: Catalog): void {
    this.#waiting = waiting
    this.#entries = entries
    this.#coming = none
    this.#since = since
    for (const id of this.#readAt.keys()) if (!catalog.views.has(id)) this.#readAt.delete(id)
  }
}

function listLiveViews(catalog: Catalog): readonly PlannedView[] {
  return [...catalog.views.values()].filter(({ view }) => view.refresh_mode === 'live')
}
