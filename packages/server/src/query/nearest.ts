/** The word that `word` was most likely meant to be: case and `$ _ -` aside, the fewest letters to change. */
export function nearest(
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

function plain(word: string): string {
  return word.slice(0, 64).toLowerCase().replace(/[$_-]/g, '')
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
