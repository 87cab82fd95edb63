import { formatDollars } from '@tollbase/server/base/format-usd'

/** Formats an amount in atomic units, with its dollars beside it. */
export function formatAmount(atomic: string | number | bigint): string {
  return `${atomic} (${formatDollars(BigInt(atomic))})`
}
