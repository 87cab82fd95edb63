import { limits } from '@tollbase/contract/limits'
import { chooseLarger } from '../../../base/bigint.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'

/** Finds the least amount that is worth the gas of a deposit. */
export function findLeastDeposit({ minimumPayment }: PaymentNetwork): bigint {
  return chooseLarger(minimumPayment, limits.depositAtomicMin)
}
