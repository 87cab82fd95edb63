/** The decimals of the currency in which every account and price is: an atomic unit is a millionth of a dollar. */
export const usdDecimals = 6

/**
 * Formats an amount of a dollar token, in atomic units, as dollars: exact, with two decimals or more, as "0.001" or
 * "12.50".
 */
export function formatUsd(atomic: bigint, decimals: number): string {
  const size = atomic < 0n ? -atomic : atomic
  const unit = 10n ** BigInt(decimals)
  const fraction = String(size % unit)
    .padStart(decimals, '0')
    .replace(/0+$/, '')
    .padEnd(2, '0')
  return `${atomic < 0n ? '-' : ''}${size / unit}.${fraction}`
}

/** Formats an amount of an account or a price, in atomic units, with the sign of dollars, as "$0.001" or "-$12.50". */
export function formatDollars(atomic: bigint): string {
  return formatUsd(atomic, usdDecimals).replace(/^-?/, '$&$$')
}

/** Formats an amount of an account or a price for a sentence, as "1000 atomic units ($0.001)". */
export function formatUnits(atomic: bigint): string {
  return `${atomic} atomic units (${formatDollars(atomic)})`
}

/** Maps those of these amounts that are given, decimal strings of atomic units, to dollars under the same names. */
export function toGivenUsd<Name extends string>(
  amounts: Readonly<Record<Name, unknown>>,
): Partial<Record<Name, string>>
export function toGivenUsd(amounts: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(amounts).flatMap(([name, amount]) =>
      typeof amount === 'string' ? [[name, formatUsd(BigInt(amount), usdDecimals)]] : [],
    ),
  )
}
