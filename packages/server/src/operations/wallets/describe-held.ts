import { toUsd } from '../../services/payments/currency.ts'
import type { HeldPage } from '../../services/payments/deposits/release-held.ts'

/** Describes held payments as the operator sees them. */
export function describeHeld({ payments, next }: HeldPage) {
  return {
    payments: payments.map((one) => {
      const [network = '', , payer = ''] = one.identity.split('/')
      const { payment_id, transaction, amount, account } = one
      const booked_at = new Date(Number(one.time_ms)).toISOString()
      const usd = toUsd({ amount })
      return { payment_id, payer, network, transaction, amount, usd, account, booked_at }
    }),
    next_cursor: next,
  }
}
