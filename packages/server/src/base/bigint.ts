/** Math.max, of two bigints. */
export function chooseLarger(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

/** Math.min, of two bigints. */
export function chooseSmaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

/**
 * Keeps an amount from 0 to a bound.
 * @example limitAmount(-5n, 10n) // 0n
 */
export function limitAmount(amount: bigint, most: bigint): bigint {
  return amount < 0n ? 0n : chooseSmaller(amount, most)
}
