import { Fault } from '../../base/fault.ts'
import { toWalletAccount } from '../../projections/ledger-entry.ts'
import type { Call } from '../../services/call.ts'
import { requestWithdrawal } from '../../services/payments/withdrawals.ts'
import type { Operation } from '../operation.ts'
import { answerWithdrawal } from './answer-withdrawal.ts'

export const withdrawFromWallet: Operation<
  'withdrawFromWallet',
  'database' | 'tenants' | 'transfers' | 'world' | 'cursorSecret'
> = async (call, { params, body }) => {
  const address = params.address.toLowerCase()
  refuseOthers(call.caller, address)
  const choose = async (asked = address) => ({ recipient: asked })
  const order = { account: toWalletAccount(address), choose }
  return answerWithdrawal(call, await requestWithdrawal(call, body, order))
}

/** 403 for all but the wallet of this address, in lower case: the operator, too, cannot spend what is a payer's. */
export function refuseOthers(caller: Call['caller'], address: string): void {
  if (caller.kind === 'wallet' && caller.address === address) return
  throw new Fault('FORBIDDEN', {
    message: 'Only the wallet itself withdraws from its balance, by its signature on the request',
  })
}
