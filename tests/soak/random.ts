/** Decisions that a seed repeats. */
export type Random = {
  /** From 0 up to and without `below`. */
  readonly integer: (below: number) => number
  /** Returns true in that many of a hundred cases. */
  readonly chance: (percent: number) => boolean
  readonly pick: <T>(from: readonly [T, ...T[]]) => T
}

/** mulberry32; each part of a run takes its own stream, so that their interleaving changes no decision. */
export function makeRandom(seed: number, stream: number): Random {
  let state = (seed ^ Math.imul(stream + 1, 0x9e3779b1)) >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const integer = (below: number) => Math.floor(next() * below)
  return {
    integer,
    chance: (percent) => next() * 100 < percent,
    pick: (from) => from[integer(from.length)] ?? from[0],
  }
}
