import { noSize, type Size } from './compute-cost.ts'
import { isFree } from './find-price.ts'
import type { Price } from './policy.ts'

/**
 * The use of a sold item, as far as prices depend on it; it is stored in the sale's entry. `granted` is a use by
 * another application's view, and `indexed` is the part of a write that price indexes share out. Price rules decide
 * neither of them.
 */
export type Measured =
  | (Size & {
      readonly by: 'rows' | 'derived'
      /** True where the answer was empty, and nothing is due for that. */
      readonly unpaid?: true
      /** The version of the predefined query. */
      readonly version?: number
    })
  | { readonly by: 'written'; readonly written: readonly MeasuredWrite[] }
  | { readonly by: 'pass'; readonly hours: number }
  | { readonly by: 'granted' | 'indexed' }

export type MeasuredWrite = Size & {
  readonly collection: string
  /** The sums of the fields whose values had a price, in atomic units. */
  readonly fields?: Readonly<Record<string, string>>
}

/** A part of a sale: what was sold, the account that earned it, what it was charged, and its use. */
export type MeasuredPart = Measured & {
  readonly account: string
  readonly kind: string
  readonly name: string
  readonly charged: string
}

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
