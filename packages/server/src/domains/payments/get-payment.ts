import { Fault } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { findClaim } from './claim-store.ts'
import { receiptIdOf } from './receipt-id.ts'

export const getPayment: Operation<'getPayment'> = async ({ service }, { params }) => {
  const { ledger, schema } = service.tenancy.system
  const claim = await findClaim(service.database, { id: params.id })
  if (claim === undefined)
    throw new Fault('PAYMENT_NOT_FOUND', { message: `There is no payment ${params.id}` })
  const sale = await ledger.sale(service.database, schema, claim.id)
  const state = sale ? 'delivered' : claim.state === 'claimed' ? 'pending' : claim.state
  const [network, asset, payer] = claim.identity.split('/')
  return {
    payment_id: claim.id,
    state,
    app: claim.app,
    operation: claim.operation,
    network,
    asset,
    payer,
    amount: String(claim.amount),
    transaction: claim.settled_by,
    reason: claim.reason,
    receipt_id: sale ? receiptIdOf(claim.id) : null,
    created_at: new Date(Number(claim.created_at_ms)).toISOString(),
  }
}
