import { Fault } from '../../base/fault.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import type { Uses } from '../../services/call.ts'
import type { OutgoingTransfer } from '../../services/payments/transfers/transfer-store.ts'
import type { Operation } from '../operation.ts'
import { describePayout } from './describe-payout.ts'

export const cancelPayout: Operation<'cancelPayout', 'transfers'> = async (
  { service },
  { params },
) => {
  const payout = await requirePayout(service, params.app, params.payout_id)
  return describePayout(await service.transfers.cancel(payout))
}

/** Returns the payout of the application, or throws 404. */
export async function requirePayout(
  { transfers }: Uses<'transfers'>,
  app: string,
  id: string,
): Promise<OutgoingTransfer> {
  const found = await transfers.find(id)
  if (found?.kind === 'payout' && found.account === toApplicationAccount(app)) return found
  throw new Fault('TRANSACTION_NOT_FOUND', { message: `${app} has no payout ${id}` })
}
