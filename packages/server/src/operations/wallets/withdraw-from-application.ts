import { Fault } from '../../base/fault.ts'
import { isOwnerTrusted } from '../../model/payout-settings.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import type { Call } from '../../services/call.ts'
import { makeNowhereFault, readPayoutState } from '../../services/payments/payouts/payouts.ts'
import { requestWithdrawal } from '../../services/payments/withdrawals.ts'
import type { Operation } from '../operation.ts'
import { answerWithdrawal } from './answer-withdrawal.ts'

type Parts = 'database' | 'tenants' | 'transfers' | 'world' | 'cursorSecret'

/**
 * The balance of an application leaves by the rules of its payouts: whoever has stolen a key can send it to nowhere
 * but where it goes anyway.
 */
export const withdrawFromApplication: Operation<'withdrawFromApplication', Parts> = async (
  call,
  { params: { app }, body },
) => {
  const choose = async (asked: string | undefined) => {
    const { destination } = await readPayoutState(call.service, app)
    const recipient = asked ?? destination
    if (recipient === undefined) throw makeNowhereFault()
    if (recipient !== destination) refuseOthers(call, app, destination)
    return { recipient }
  }
  const order = { account: toApplicationAccount(app), choose }
  return answerWithdrawal(call, await requestWithdrawal(call, body, order))
}

/** Another address than that of payouts is for the owner alone, and for no owner whom a key named just now. */
function refuseOthers(
  { caller, service: { tenants, world } }: Call<Parts>,
  app: string,
  destination: string | undefined,
): void {
  const record = tenants.requireRecord(app)
  const isOwner = caller.kind === 'wallet' && caller.address === record.owner_address
  if (isOwner && isOwnerTrusted(record, world.now())) return
  throw new Fault('PAYOUT_NOT_POSSIBLE', {
    message: `A key can withdraw only to the destination of payouts, ${destination ?? 'and there is none'}. To withdraw to another address, sign with the owner's wallet or change payout_destination`,
  })
}
