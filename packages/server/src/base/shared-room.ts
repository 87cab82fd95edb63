export type PlaceBounds = {
  readonly max: number
  /** The most of one holder that has several places; one place alone may be larger. */
  readonly ofHolderMax: number
  /** The part that is kept for holders without any, so that a few cannot hold all. */
  readonly forNew?: number
  /** The part that is kept for those who pay. */
  readonly forPaid?: number
}

/** The things that hold places now, without the one that is asked for. */
type Held = {
  readonly total: number
  /** Those of its holder. */
  readonly own: number
  /** Those of all who pay. */
  readonly paid?: number
}

/** Says whether a holder may have one more place, of this size; 1 when not given. */
export function hasPlace(
  { max, ofHolderMax, forNew = 0, forPaid = 0 }: PlaceBounds,
  { total, own, paid = 0 }: Held,
  { size = 1, isPaid = false }: { readonly size?: number; readonly isPaid?: boolean } = {},
): boolean {
  const most = isPaid ? max : max - forPaid
  if (own === 0) return total + size <= most
  // The part for those who pay is theirs, though others have all the rest.
  const isKept = isPaid && paid + size <= forPaid
  return own + size <= ofHolderMax && (isKept || total + size <= most - forNew)
}

/** The place of one thing in a room, which may grow. */
export type Place = {
  /** Makes it so large; 0 frees it. False where there is no room for more: then it stays as it was. */
  readonly set: (size: number) => boolean
}

/** A bound on what many hold together, such as bytes, in which each holder has a share. */
export class SharedRoom {
  readonly #bounds: PlaceBounds
  readonly #held = new Map<string, number>()
  #total = 0
  #paid = 0

  constructor(bounds: PlaceBounds) {
    this.#bounds = bounds
  }

  /** Opens a place of size 0. Those who pay have shares of their own, whatever the same holder has for nothing. */
  open(name: string, { isPaid = false }: { readonly isPaid?: boolean } = {}): Place {
    const holder = isPaid ? `${name} paid` : name
    let own = 0
    return {
      set: (size) => {
        const before = this.#held.get(holder) ?? 0
        const paid = this.#paid - (isPaid ? own : 0)
        const others = { total: this.#total - own, own: before - own, paid }
        if (size > own && !hasPlace(this.#bounds, others, { size, isPaid })) return false
        this.#total = others.total + size
        if (isPaid) this.#paid = paid + size
        if (others.own + size > 0) this.#held.set(holder, others.own + size)
        else this.#held.delete(holder)
        own = size
        return true
      },
    }
  }
}
