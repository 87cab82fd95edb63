import { currency } from '../../services/payments/currency.ts'
import type { Operation } from '../operation.ts'

export const getPayoutInfo: Operation<'getPayoutInfo', 'database' | 'tenants'> = async (
  { service },
  { params },
) => {
  const { chain, ledger, schema } = service.tenants.system
  await chain.whenApplied(chain.head().height)
  const { balance, earned } = await ledger.readBalance(
    service.database,
    schema,
    `app:${params.app}`,
  )
  return {
    auto_payout_enabled: false,
    locked_balance: '0',
    min_payout: '0',
    payout_threshold: null,
    payout_destination: service.tenants.requireRecord(params.app).owner_address,
    available_balance: String(balance),
    pending_balance: '0',
    lifetime_earned: String(earned),
    lifetime_paid: '0',
    ...currency,
  }
}
