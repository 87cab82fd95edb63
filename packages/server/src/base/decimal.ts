const number = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,4}))?$/
/** Digits of a whole number; no amount has as many. */
const digitsMax = 40

/**
 * Parses a JSON number into a whole count of its `decimals`-th part (19.9 with 2 decimals is 1990): exactly, from
 * its digits and never through a double. Returns the problem as text where it is not one.
 */
export function parseWholeUnits(text: string, decimals: number): bigint | string {
  const found = number.exec(text)
  if (found === null) return 'must be a number'
  const [, sign, whole = '', fraction = '', exponent = '0'] = found
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return 0n
  if (sign === '-') return 'must not be negative'
  const zeros = digits.length - significant.length + Number(exponent) - fraction.length + decimals
  if (zeros < 0) return `has more than ${decimals} decimals`
  if (significant.length + zeros > digitsMax) return 'is too large'
  return BigInt(significant) * 10n ** BigInt(zeros)
}
