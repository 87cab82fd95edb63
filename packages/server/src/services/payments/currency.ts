import { formatUsd, usdDecimals } from '../../base/format-usd.ts'

/** The money of every account, as replies state it. */
export const currency = { currency: 'USDC', decimals: usdDecimals } as const

/** Maps amounts in atomic units to dollars, under the same names, for people who read an answer. */
export function toUsd<Name extends string>(
  amounts: Readonly<Record<Name, string>>,
): Record<Name, string>
export function toUsd(amounts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(amounts).map(([name, amount]) => [
      name,
      formatUsd(BigInt(amount), currency.decimals),
    ]),
  )
}
