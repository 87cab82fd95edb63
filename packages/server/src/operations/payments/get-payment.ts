import { Fault } from '../../base/fault.ts'
import { findReversal } from '../../projections/reversals.ts'
import { balanceNetwork } from '../../services/payments/budgets/paying-key.ts'
import { findClaim } from '../../services/payments/claims/claim-store.ts'
import type { ClaimState } from '../../services/payments/claims/payment-states.ts'
import { toUsd } from '../../services/payments/currency.ts'
import { toReceiptId } from '../../services/payments/replies/receipt-id.ts'
import type { Operation } from '../operation.ts'

export const getPayment: Operation<'getPayment', 'database' | 'tenants'> = async (
  { service },
  { params },
) => {
  const { chain, ledger, schema } = service.tenants.system
  await chain.whenApplied(chain.head().height)
  // In this order: the claim notes the money before a sale is booked, and that it is delivered after.
  const sale = await ledger.findSale(service.database, schema, params.id)
  const claim = await findClaim(service.database, { id: params.id })
  if (claim === undefined)
    throw new Fault('PAYMENT_NOT_FOUND', { message: `There is no payment ${params.id}` })
  const reversal = await findReversal(service.database, schema, claim.id)
  const state = sale ? 'delivered' : visibleStates[claim.state]
  const [network = '', asset = '', payer = ''] = claim.identity.split('/')
  const isHere = claim.state === 'held' && claim.settled_by !== null
  // A key or a channel that pays moves nothing: this is the most that it may be charged.
  const isCharged = network === balanceNetwork || payer.startsWith('channel:')
  const amount = String(isCharged ? claim.cap : claim.amount)
  return {
    payment_id: claim.id,
    // Its money came, and waits for the request to be sent again.
    state: reversal ? 'reversed' : isHere ? 'settled' : state,
    app: claim.app,
    operation: claim.operation,
    network,
    asset,
    payer,
    amount,
    usd: toUsd({ amount }),
    transaction: claim.settled_by,
    reason: reversal?.reason ?? claim.reason,
    receipt_id: state === 'delivered' ? toReceiptId(claim.id) : null,
    created_at: new Date(Number(claim.created_at_ms)).toISOString(),
  }
}

/** The states as a payer sees them; payments that can never be made have failed, too. */
const visibleStates = {
  claimed: 'pending',
  ready: 'pending',
  held: 'pending',
  owed: 'settled',
  answered: 'settled',
  deposited: 'settled',
  sold: 'delivered',
  delivered: 'delivered',
  failed: 'failed',
  void: 'failed',
} as const satisfies Readonly<Record<ClaimState, string>>
