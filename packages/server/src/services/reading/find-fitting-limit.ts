import { limits } from '@tollbase/contract/limits'

/** Finds the most records, as a power of two, of which some have as many bytes as all have in the mean. */
export function findFittingLimit(
  { count, bytes }: { readonly count: number; readonly bytes: number | bigint },
  bytesMax: number,
): number | undefined {
  const fitting = Math.min((count * bytesMax) / Number(bytes), limits.rowsMax)
  return fitting >= 1 ? 2 ** Math.floor(Math.log2(fitting)) : undefined
}
