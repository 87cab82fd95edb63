import { chooseLarger } from '../../../base/bigint.ts'
import type { PayoutSettings } from '../../../model/payout-settings.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'

/** Finds the least amount of a payout, in atomic units: the owner's own, or what is worth the gas of a transfer. */
export function findLeastPayout(
  { min_payout }: PayoutSettings,
  { withdrawalMinimum }: PaymentNetwork,
): bigint {
  return chooseLarger(BigInt(min_payout), withdrawalMinimum)
}
