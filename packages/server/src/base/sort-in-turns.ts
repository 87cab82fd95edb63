import { awaitTurn } from './await-turn.ts'

/** Items that are sorted or merged without a pause. */
const itemsAtOnce = 2_048

/** Sorts as `toSorted` does; others have their turns meanwhile, however long the list is. */
export async function sortInTurns<T extends object>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
): Promise<readonly T[]> {
  let runs: (readonly T[])[] = []
  for (let from = 0; from < items.length; from += itemsAtOnce) {
    if (from > 0) await awaitTurn()
    runs.push(items.slice(from, from + itemsAtOnce).sort(compare))
  }
  while (runs.length > 1) {
    const merged: (readonly T[])[] = []
    for (let at = 0; at < runs.length; at += 2)
      merged.push(await mergeInTurns(runs[at] ?? [], runs[at + 1] ?? [], compare))
    runs = merged
  }
  return runs[0] ?? []
}

async function mergeInTurns<T extends object>(
  left: readonly T[],
  right: readonly T[],
  compare: (a: T, b: T) => number,
): Promise<readonly T[]> {
  const result: T[] = []
  for (let [l, r] = [0, 0]; l < left.length || r < right.length; ) {
    if (result.length > 0 && result.length % itemsAtOnce === 0) await awaitTurn()
    const [first, second] = [left[l], right[r]]
    // Equal items stay in their order: those of the left run come first.
    const next = pickFirst(first, second, compare)
    if (next === first) l += 1
    else r += 1
    if (next !== undefined) result.push(next)
  }
  return result
}

function pickFirst<T extends object>(
  left: T | undefined,
  right: T | undefined,
  compare: (a: T, b: T) => number,
): T | undefined {
  if (left === undefined || right === undefined) return left ?? right
  return compare(left, right) <= 0 ? left : right
}
