/** A source of choices that gives the same ones for the same seed. */
export type Random = {
  /** 0 to below 1. */
  readonly next: () => number
  /** A whole number from 0 to below `count`. */
  readonly below: (count: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <T>(list: readonly T[]) => T
  /** Makes as many values as `count` says, each anew. */
  readonly list: <T>(count: number, make: () => T) => T[]
}

/** Makes the choices of one seed: FNV-1a of its text starts a mulberry32. */
export function makeRandom(seed: string): Random {
  let state = 0x811c9dc5
  for (let at = 0; at < seed.length; at++) {
    state = Math.imul(state ^ seed.charCodeAt(at), 0x01000193)
  }
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (count: number) => Math.floor(next() * count)
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick: <T>(list: readonly T[]): T => {
      if (list.length === 0) throw new Error('there is nothing to pick from')
      return list[below(list.length)] as T
    },
    list: (count, make) => Array.from({ length: count }, make),
  }
}
