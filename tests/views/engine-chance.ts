/** Draws from a seed; the same seed gives the same draws. */
export type Chance = {
  /** A whole number below `below`. */
  readonly below: (below: number) => number
  readonly one: <T>(list: readonly T[]) => T
  readonly happens: (percent: number) => boolean
  readonly some: <T>(list: readonly T[], least: number, most: number) => T[]
}

/** mulberry32. */
export function makeChance(seed: number): Chance {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (count: number) => Math.floor(next() * count)
  const one = <T>(list: readonly T[]): T => {
    const found = list[below(list.length)]
    if (found === undefined) throw new Error('nothing to draw from')
    return found
  }
  return {
    below,
    one,
    happens: (percent) => below(100) < percent,
    some: (list, least, most) => {
      const rest = [...list]
      const count = Math.min(list.length, least + below(most - least + 1))
      return Array.from({ length: count }, () => rest.splice(below(rest.length), 1)).flat()
    },
  }
}
