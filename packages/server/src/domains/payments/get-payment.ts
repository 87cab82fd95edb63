import { Fault } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { type Claim, findClaim } from './claim-store.ts'
import { receiptIdOf } from './receipt-id.ts'

export const getPayment: Operation<'getPayment'> = async ({ service }, { params }) => {
  const { chain, ledger, schema } = service.tenancy.system
  const claim = await findClaim(service.database, { id: params.id })
  if (claim === undefined)
    throw new Fault('PAYMENT_NOT_FOUND', { message: `There is no payment ${params.id}` })
  await chain.whenApplied(chain.head().height)
  const sale = await ledger.sale(service.database, schema, claim.id)
  const [network, asset, payer] = claim.identity.split('/')
  return {
    payment_id: claim.id,
    state: sale ? 'delivered' : stateOf(claim),
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

/** An open claim whose money has arrived is settled, for all that the payer can see. */
function stateOf({ state, settled_by }: Claim): string {
  if (state !== 'claimed') return state
  return settled_by === null ? 'pending' : 'settled'
}
