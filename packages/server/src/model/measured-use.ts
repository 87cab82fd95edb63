import type { Measured } from '@tollbase/verify/sale-details'
import { noSize, type Size } from './compute-cost.ts'
import { isFree } from './find-price.ts'
import type { Price } from './policy.ts'

/**
 * Notes the use of a part of an answer; `size` is null where nothing is due for it. A part without a price is not
 * noted: the buyer need not know of it.
 */
export function makeMeasuredRead(
  price: Price,
  size: Size | null,
  {
    by = 'rows',
    version,
  }: { readonly by?: 'rows' | 'derived' | 'granted'; readonly version?: number | undefined } = {},
): Measured | undefined {
  if (isFree(price)) return undefined
  if (by === 'granted') return { by }
  const unpaid = size === null && ({ unpaid: true } as const)
  return { by, ...(size ?? noSize), ...unpaid, ...(version !== undefined && { version }) }
}
