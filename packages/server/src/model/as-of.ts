/** The position that an answer was read at. */
export function toAsOf(
  height: bigint | number,
  sequence: number,
): { block_height: number; sequence: number } {
  return { block_height: Number(height), sequence }
}
