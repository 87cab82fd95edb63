import { formatUnits } from '../../base/format-usd.ts'
import { currency, toUsd } from '../../services/payments/currency.ts'
import { findExplorerLink } from '../../services/payments/explorer-link.ts'
import type { Payments } from '../../services/payments/payments.ts'
import { toReceiptId } from '../../services/payments/replies/receipt-id.ts'
import type { Transaction } from '../../services/payments/transactions.ts'

export function describeTransaction(payments: Pick<Payments, 'ports'>, one: Transaction) {
  const explorer = findExplorerLink(payments, { network: one.network, hash: one.transaction })
  const isPayment = one.kind === 'payment' || one.kind === 'deposit'
  const status = one.lost === null ? statuses[one.state] : 'reversed'
  return {
    id: one.id,
    kind: one.kind,
    status,
    app_id: findApplication(one),
    operation: one.kind === 'payment' ? one.operation : null,
    amount: one.amount,
    ...currency,
    usd: toUsd({ amount: one.amount }),
    network: one.network,
    from: one.sender,
    to: one.recipient,
    transaction_hash: one.transaction,
    error: describeError(one, status),
    created_at: new Date(Number(one.created_at_ms)).toISOString(),
    links: {
      ...(isPayment && { payment: `/api/payments/${one.id}` }),
      ...((one.state === 'delivered' || one.state === 'sold') && {
        receipt: `/api/receipts/${toReceiptId(one.id)}`,
      }),
      ...(explorer !== undefined && { explorer }),
    },
  }
}

/** The states of payments and of transfers, as the public clients know them. */
const statuses: Readonly<
  Record<Transaction['state'], 'pending' | 'confirmed' | 'failed' | 'reversed'>
> = {
  claimed: 'pending',
  ready: 'pending',
  held: 'pending',
  owed: 'confirmed',
  answered: 'confirmed',
  deposited: 'confirmed',
  sold: 'confirmed',
  delivered: 'confirmed',
  failed: 'failed',
  void: 'failed',
  asked: 'pending',
  debited: 'pending',
  sent: 'pending',
  cancelled: 'failed',
  paid: 'confirmed',
  returned: 'failed',
  reversed: 'reversed',
}

function describeError({ lost, network, reason }: Transaction, status: string): string | null {
  if (lost === null) return status === 'confirmed' ? null : reason
  return `${network} does not have it any more; ${formatUnits(BigInt(lost))} of it is the operator's loss`
}

function findApplication({ kind, owner }: Transaction): string | null {
  if (kind === 'payment') return owner
  return owner.startsWith('app:') ? owner.slice('app:'.length) : null
}
