import type { Size } from '../../../model/compute-cost.ts'
import type { Claim } from '../claims/claim-store.ts'
import type { Keeping } from '../claims/reply-store.ts'
import type { Paid, Terms } from '../purchase.ts'

/** A claim whose cap is to be held on its payer's account. */
export type HoldOrder = {
  /** As it is to be. */
  readonly claim: Claim
  /** As it is, where it was made before. */
  readonly found: Claim | undefined
  readonly terms: Terms
  /** The answer that is kept with it, where that was made first. */
  readonly answer: Keeping | undefined
  readonly paid: Pick<Paid, 'mostUnder' | 'spending' | 'channel'>
  /** The largest sizes of what is metered. */
  readonly most?: readonly (Size | null)[]
}
