import { limits } from '@tollbase/contract/limits'
import type { PaymentNetwork } from '../../../x402/networks.ts'

/** Finds the least amount that is worth the gas of a deposit. */
export function findLeastDeposit({ minimumPayment }: PaymentNetwork): bigint {
  const least = limits.depositAtomicMin
  return minimumPayment > least ? minimumPayment : least
}
