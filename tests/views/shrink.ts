/**
 * Yields lists without some of their elements, the boldest first, and the last elements before the first; `least`
 * of them stay.
 */
export function* iterateFewer<T>(list: readonly T[], least = 0): Generator<readonly T[]> {
  for (let size = list.length; size >= 1; size = Math.floor(size / 2))
    for (let end = list.length; end > 0; end -= size) {
      const rest = [...list.slice(0, Math.max(0, end - size)), ...list.slice(end)]
      if (rest.length >= least) yield rest
    }
}

/** Yields lists with one element simplified. */
export function* simplifyEach<T>(
  list: readonly T[],
  simpler: (one: T) => Iterable<T>,
): Generator<readonly T[]> {
  for (const [at, one] of list.entries())
    for (const other of simpler(one)) yield list.with(at, other)
}

type Shrinking<Case> = {
  /** Yields cases that are a little simpler, the boldest first. Each chain of them ends. */
  readonly simpler: (one: Case) => Iterable<Case>
  readonly fails: (one: Case) => Promise<boolean>
  readonly triesMax: number
  readonly progress?: (tries: number, smallest: Case) => void
}

/** Finds the simplest case that fails too. It goes on where it was successful: earlier candidates were tried once. */
export async function shrink<Case>(found: Case, shrinking: Shrinking<Case>): Promise<Case> {
  const { simpler, fails, triesMax, progress } = shrinking
  let smallest = found
  let list = [...simpler(found)]
  for (let tries = 0, at = 0, misses = 0; tries < triesMax && misses < list.length; tries += 1) {
    const candidate = list[at % list.length]
    if (candidate !== undefined && (await fails(candidate))) {
      smallest = candidate
      list = [...simpler(candidate)]
      misses = 0
    } else {
      at = (at + 1) % list.length
      misses += 1
    }
    progress?.(tries + 1, smallest)
  }
  return smallest
}
