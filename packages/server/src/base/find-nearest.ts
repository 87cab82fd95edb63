/** Finds the known word with the fewest letters to change, ignoring case and `$ _ -`. */
export function findNearest(
  word: string,
  known: Iterable<string>,
): { readonly word: string; readonly distance: number } {
  const wanted = plain(word)
  let best = { word: '', distance: Number.POSITIVE_INFINITY }
  for (const candidate of known) {
    const distance = editDistance(wanted, plain(candidate))
    if (distance < best.distance) best = { word: candidate, distance }
  }
  return best
}

/**
 * Returns true if there is one letter to change (add, leave out, swap with its neighbour) between two words, as
 * `findNearest` counts. It takes far less time.
 */
export function isLetterAway(word: string, other: string): boolean {
  const [a, b] = [plain(word), plain(other)]
  if (a === b || Math.abs(a.length - b.length) > 1) return false
  const shorter = Math.min(a.length, b.length)
  let start = 0
  while (start < shorter && a[start] === b[start]) start += 1
  let end = 0
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end += 1
  const [left, right] = [a, b].map((each) => each.slice(start, each.length - end))
  if (left === undefined || right === undefined) return false
  const isSwapped = left[0] === right[1] && left[1] === right[0]
  const most = Math.max(left.length, right.length)
  return most === 1 || (most === 2 && left.length === right.length && isSwapped)
}

function plain(word: string): string {
  return word.slice(0, 64).toLowerCase().replace(/[$_-]/g, '')
}

/** Counts the letters to add, leave out, change, or swap with a neighbour (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let before: readonly number[] = []
  let row: readonly number[] = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}
