import { toUsd } from '../../services/payments/currency.ts'
import type { PayoutState } from '../../services/payments/payouts/payouts.ts'
import type { OutgoingTransfer } from '../../services/payments/transfers/transfer-store.ts'
import { isCancellation } from '../../services/payments/transfers/transfers.ts'

export function describeSettings({ settings, destination, pending }: PayoutState) {
  return {
    auto_payout_enabled: settings.auto_payout_enabled,
    locked_balance: settings.locked_balance,
    pending_locked_balance: describeLater(settings.locked_later),
    min_payout: settings.min_payout,
    payout_threshold: settings.payout_threshold,
    direct_settlement: settings.direct_settlement ?? false,
    payout_destination: destination ?? null,
    pending_destination:
      pending === undefined
        ? null
        : { address: pending.address, from: new Date(pending.fromMs).toISOString() },
  }
}

function describeLater(later: PayoutState['settings']['locked_later']) {
  if (!later) return null
  return { amount: later.amount, from: new Date(later.from_ms).toISOString() }
}

const statuses = {
  asked: 'pending',
  debited: 'pending',
  sent: 'pending',
  cancelled: 'cancelled',
  paid: 'paid',
  returned: 'failed',
} as const

export function describePayout(one: OutgoingTransfer) {
  const { id, state, amount, recipient, network } = one
  return {
    payout_id: id,
    status: isCancellation(one) ? 'cancelled' : statuses[state],
    amount: String(amount),
    destination: recipient,
    network,
    usd: toUsd({ amount: String(amount) }),
  }
}
