import { makeInvalidFault } from '../../base/fault.ts'
import { platformAccount } from '../../projections/ledger-entry.ts'
import { requestWithdrawal } from '../../services/payments/withdrawals.ts'
import type { Operation } from '../operation.ts'
import { answerWithdrawal } from './answer-withdrawal.ts'

export const withdrawFromPlatform: Operation<
  'withdrawFromPlatform',
  'database' | 'tenants' | 'transfers' | 'world' | 'cursorSecret'
> = async (call, { body }) => {
  const choose = async (recipient: string | undefined) => {
    if (recipient === undefined) throw makeInvalidFault('/destination', 'is needed')
    return { recipient }
  }
  const order = { account: platformAccount, choose }
  return answerWithdrawal(call, await requestWithdrawal(call, body, order))
}
