import { requirePresent } from '../../base/assert.ts'
import { makeJsonReply } from '../../http/reply.ts'
import type { Call } from '../../services/call.ts'
import { toUsd } from '../../services/payments/currency.ts'
import { describeMovement } from '../../services/payments/describe-movement.ts'
import type { OutgoingTransfer } from '../../services/payments/transfers/transfer-store.ts'

const statuses = {
  asked: 'pending',
  debited: 'pending',
  sent: 'pending',
  cancelled: 'failed',
  paid: 'paid',
  returned: 'failed',
} as const

/** Answers with a withdrawal, and with the entry that took it from its balance. */
export async function answerWithdrawal(
  { service: { database, tenants } }: Call<'database' | 'tenants'>,
  { id, state, amount, fee, recipient, network, transaction, account }: OutgoingTransfer,
) {
  const { ledger, schema } = tenants.system
  const booked = requirePresent(
    await ledger.findTransfer(database, schema, id),
    'the entry of a withdrawal that was debited',
  )
  const entry = await ledger.findMovement(database, schema, { leaf: booked.leaf, account })
  const answer = {
    withdrawal_id: id,
    status: statuses[state],
    amount: String(amount),
    fee: String(fee),
    destination: recipient,
    network,
    usd: toUsd({ amount: String(amount), fee: String(fee) }),
    transaction_hash: transaction,
    entry: describeMovement(requirePresent(entry, 'the posting of a withdrawal')),
  }
  return makeJsonReply(answer, { status: 202 })
}
