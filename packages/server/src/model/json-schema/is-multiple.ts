/** Returns true if a number is a multiple of another one, by their decimal digits: 0.0075 is one of 0.0001. */
export function isMultiple(value: number, divisor: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0
  const [a, b] = [readDigits(value), readDigits(divisor)]
  const exponent = Math.min(a.exponent, b.exponent)
  const scale = (one: Digits) => one.digits * 10n ** BigInt(one.exponent - exponent)
  return scale(a) % scale(b) === 0n
}

/** A number as digits * 10 ** exponent. */
type Digits = { readonly digits: bigint; readonly exponent: number }

function readDigits(value: number): Digits {
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  return { digits: BigInt(`${whole}${fraction}`), exponent: Number(exponent) - fraction.length }
}
