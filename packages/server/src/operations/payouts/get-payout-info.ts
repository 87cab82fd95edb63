import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import { sumDirect } from '../../projections/read-sales.ts'
import { currency, toUsd } from '../../services/payments/currency.ts'
import { readPayoutState } from '../../services/payments/payouts/payouts.ts'
import type { Operation } from '../operation.ts'
import { describeSettings } from './describe-payout.ts'

export const getPayoutInfo: Operation<
  'getPayoutInfo',
  'database' | 'tenants' | 'transfers' | 'world'
> = async ({ service }, { params }) => {
  const { database, tenants, transfers } = service
  const account = toApplicationAccount(params.app)
  const state = await readPayoutState(service, params.app)
  const { ledger, schema } = tenants.system
  const { earned } = await ledger.readBalance(database, schema, account)
  const { pending, paid } = await transfers.sum(account)
  const amounts = {
    available_balance: String(state.available),
    pending_balance: String(pending),
    lifetime_earned: String(earned),
    lifetime_paid: String(paid),
    lifetime_direct: String(await sumDirect(database, { schema, account })),
  }
  return { ...describeSettings(state), ...amounts, ...currency, usd: toUsd(amounts) }
}
