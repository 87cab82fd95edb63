/** Counts the values that a JSON value is made of, itself, lists and objects included; counting ends past `most`. */
export function countValues(value: unknown, most: number): number {
  let count = 1
  if (typeof value !== 'object' || value === null) return count
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    if (count > most) return count
    count += countValues(inner, most - count)
  }
  return count
}
